#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The HTTP client over streams, downloading from Python's own server on loopback, in the clear and with TLS.

Rules: 329 335 1006 1011 1012
"""
import http.server
import os
import random
import ssl
import subprocess
import threading

from server import example, expect, folder, free_port, run, tool

SIZES = {"empty": 0, "small": 10, "page": 5000, "large": 4 * 1024 * 1024}
BODIES = {name: random.Random(size).randbytes(size) for name, size in SIZES.items()}


class Handler(http.server.BaseHTTPRequestHandler):
    """Serves the bodies: /name with a length, /name?chunked in chunks, /name?end to the end, /name?cut less than it says."""

    protocol_version = "HTTP/1.1"

    def do_GET(self):
        path, _, way = self.path[1:].partition("?")
        body = BODIES.get(path)
        self.send_response(404 if body is None else 200)
        body = body or b""
        if way == "chunked":
            self.send_header("Transfer-Encoding", "chunked")
        elif way != "end":
            self.send_header("Content-Length", str(len(body) + (way == "cut")))
        self.end_headers()
        pieces = [body[i:i + 1000] for i in range(0, len(body), 1000)]
        if way == "chunked":
            body = b"".join(b"%x\r\n%s\r\n" % (len(piece), piece) for piece in pieces) + b"0\r\n\r\n"
        self.wfile.write(body)
        self.close_connection = True

    def log_message(self, *_):
        pass


class Server(http.server.ThreadingHTTPServer):
    """With a certificate it speaks TLS. Handshakes that a client breaks off are no errors of the test."""

    def __init__(self, certificate=None):
        super().__init__(("127.0.0.1", 0), Handler)
        self.context = None
        if certificate:
            self.context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            self.context.load_cert_chain(certificate)
        threading.Thread(target=self.serve_forever, daemon=True).start()

    def finish_request(self, request, client_address):
        if self.context:
            request = self.context.wrap_socket(request, server_side=True)
        super().finish_request(request, client_address)
        if self.context:
            request.unwrap()

    def handle_error(self, request, client_address):
        pass


def checksum(data):
    value = 0xCBF29CE484222325
    for byte in data:
        value = (value ^ byte) * 0x100000001B3 & 0xFFFFFFFFFFFFFFFF
    return value


client = example("http-client")
openssl = tool("openssl")
with folder() as where:
    certificate = os.path.join(where, "both.pem")
    subprocess.run([openssl, "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", "/CN=test", "-addext",
                    "subjectAltName=DNS:localhost,IP:127.0.0.1", "-keyout", os.path.join(where, "key.pem"), "-out",
                    os.path.join(where, "certificate.pem")], check=True, capture_output=True)
    with open(certificate, "w", encoding="ascii") as both:
        for part in ("key.pem", "certificate.pem"):
            with open(os.path.join(where, part), encoding="ascii") as file:
                both.write(file.read())
    trust = ["--trust", os.path.join(where, "certificate.pem")]
    sums = {name: f"200 {len(body)} {checksum(body):016x}" for name, body in BODIES.items()}
    plain, secure = Server(), Server(certificate)
    for base, options in ((f"http://127.0.0.1:{plain.server_port}", []), (f"https://localhost:{secure.server_port}", trust)):
        urls = [f"{base}/{name}{way}" for name in SIZES for way in ("", "?chunked", "?end")]
        lines = run(client, *options, *urls).splitlines()
        expect(len(lines) == len(urls), f"every download of {base} ended")
        for url in urls:
            name = url.rsplit("/", 1)[1].partition("?")[0]
            expect(f"{sums[name]} {url}" in lines, f"{url} arrived whole")
        expect("cut short" in run(client, *options, f"{base}/page?cut", status=1), "a response that is cut short is told")
        expect(run(client, *options, f"{base}/nothing", status=1).startswith("404 0 "), "what is not there is told")
    refusal = run(client, f"https://127.0.0.1:{secure.server_port}/page", status=1)
    expect("certificates of the peer are refused" in refusal, "an unknown authority is refused")
    expect("Connection refused" in run(client, f"http://127.0.0.1:{free_port()}/", status=1), "a server that is gone is told")
