# SPDX-License-Identifier: Apache-2.0
# `nix-build packaging/nix` builds the tree. Of the add-on libraries it has those of names of hosts, TLS and property lists.
{ pkgs ? import <nixpkgs> { } }:

let
  tree = ../..;
  header = builtins.readFile (tree + "/Headers/CRLRunLoop.h");
  version = builtins.head (builtins.match ".*#define CRL_VERSION_STRING \"([0-9.]+)\".*" header);
in
pkgs.stdenv.mkDerivation {
  pname = "corerunloop";
  inherit version;
  src = pkgs.lib.cleanSource tree;
  nativeBuildInputs = [ pkgs.pkg-config pkgs.python3 ];
  buildInputs = [ pkgs.libbsd pkgs.c-ares pkgs.openssl pkgs.elfutils ];
  postPatch = "patchShebangs scripts Tools AddOns";
  makeFlags = [ "PREFIX=$(out)" "CC=${pkgs.stdenv.cc.targetPrefix}cc" ];
  enableParallelBuilding = true;
  meta = {
    description = "Core Foundation's run loops for Linux";
    license = pkgs.lib.licenses.asl20;
    platforms = pkgs.lib.platforms.linux;
  };
}
