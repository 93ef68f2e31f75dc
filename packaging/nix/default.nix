# SPDX-License-Identifier: Apache-2.0
# The C library, by the tree's own Makefile: nix-build packaging/nix
{ pkgs ? import <nixpkgs> { } }:

pkgs.stdenv.mkDerivation {
  pname = "corerunloop";
  version = builtins.head (builtins.match ".*#define CRL_VERSION_STRING \"([0-9.]+)\".*" (builtins.readFile ../../Headers/CRLRunLoop.h));
  src = pkgs.lib.cleanSource ../..;
  nativeBuildInputs = [ pkgs.pkg-config pkgs.python3 ];
  buildInputs = [ pkgs.libbsd ];
  postPatch = "patchShebangs scripts";
  makeFlags = [ "PREFIX=${placeholder "out"}" ];
  enableParallelBuilding = true;
  meta = {
    description = "Core Foundation's run loops for Linux";
    license = pkgs.lib.licenses.asl20;
    platforms = pkgs.lib.platforms.linux;
  };
}
