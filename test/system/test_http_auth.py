"""Who may come in: tokens, names, origins, other users, and web pages in a real browser."""

import http.server
import json
import os
import shutil
import subprocess
import sys
import threading

import pytest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "lib"))
from glianode import Box  # noqa: E402
from httpnode import JOBS, ask_tcp, assert_error, serve, token  # noqa: E402

BODY = json.dumps({"flow": {"steps": {"a": {"noop": True}}}}).encode()


class Door:
    """A node with a listener on TCP."""

    def __init__(self, box, address):
        self.box = box
        self.address = address
        self.port = address.rpartition(":")[2]
        self.bearer = {"Authorization": f"Bearer {token(box)}"}

    def ask(self, method, path, body=None, **headers):
        headers = {name.replace("_", "-"): value for name, value in headers.items()}
        return ask_tcp(self.address, method, path, body, {**self.bearer, **headers})


@pytest.fixture(name="door", scope="module")
def make_door(tmp_path_factory):
    box = Box(tmp_path_factory.mktemp("door"))
    yield Door(box, serve(box, "--listen", "127.0.0.1:0"))
    box.close()


# ---- the token ----


def test_with_the_token_everything_works_over_tcp(door):
    answer = door.ask("POST", JOBS, BODY)
    assert answer.status == 201
    assert door.ask("GET", f"{JOBS}/{answer.json['job_id']}").status == 200
    assert door.ask("GET", "/healthz").json == {"status": "ok"}


@pytest.mark.parametrize("value", [
    None, "", "Bearer", "Bearer ", "Bearer x", "Basic {token}", "{token}", "Bearer {token}0",
    "Bearer {short}", "Bearer {upper}",
])
@pytest.mark.parametrize("path", ["/healthz", "/metrics", JOBS, "/nowhere"])
def test_without_the_token_nothing_does(door, path, value):
    secret = token(door.box)
    headers = {} if value is None else {"Authorization": value.format(
        token=secret, short=secret[:-1], upper=secret.upper() + "A" * (secret == secret.upper()))}
    answer = ask_tcp(door.address, "GET", path, headers=headers)
    error = assert_error(answer, 401, "denied")
    assert "token" in error["hint"] and answer.headers["WWW-Authenticate"] == "Bearer"
    assert secret not in answer.body.decode()


def test_the_token_is_the_users_alone(door):
    path = os.path.join(door.box.data, "token")
    assert os.stat(path).st_mode & 0o777 == 0o600
    assert len(token(door.box)) == 64


# ---- names ----


@pytest.mark.parametrize("host", [
    "localhost", "localhost:{port}", "LOCALHOST:{port}", "127.0.0.1", "127.0.0.1:{port}",
    "[::1]:{port}"])
def test_the_node_goes_by_its_own_names(door, host):
    assert door.ask("GET", "/healthz", Host=host.format(port=door.port)).status == 200


@pytest.mark.parametrize("host", [
    "evil.example", "evil.example:{port}", "localhost.evil.example", "127.0.0.1.evil.example",
    "127.0.0.2", "0.0.0.0:{port}", "", "x@localhost", "[::2]", "localhost,evil.example"])
def test_other_names_are_refused_even_with_the_token(door, host):
    error = assert_error(door.ask("GET", JOBS, Host=host.format(port=door.port)), 403, "denied")
    assert error["field"] == "Host"


def test_two_names_are_none(door):
    """Either the library refuses it, or we do."""
    answer = door.ask("GET", JOBS, Host=["localhost", "evil.example"])
    assert answer.status in (400, 403)


# ---- origins ----


@pytest.mark.parametrize("origin", [
    "http://evil.example", "https://localhost:{port}", "http://localhost:1", "null", "",
    "http://127.0.0.1", "http://127.0.0.1:{port}.evil.example", "file://"])
@pytest.mark.parametrize("method", ["GET", "POST", "PUT", "DELETE", "OPTIONS", "HEAD", "PATCH"])
def test_pages_of_other_origins_are_refused_for_every_method(door, method, origin):
    answer = door.ask(method, JOBS, BODY if method == "POST" else None,
                      Origin=origin.format(port=door.port))
    assert answer.status == 403
    assert not [name for name in answer.headers if name.lower().startswith("access-control")]


def test_a_page_of_the_node_itself_would_be_allowed(door):
    assert door.ask("GET", JOBS, Origin=f"http://{door.address}").status == 200
    # ... but not through the unix socket, where no browser can be.
    answer = door.box.ask("GET", JOBS, headers={"Origin": "http://glia"})
    assert_error(answer, 403, "denied")


@pytest.mark.parametrize("site", ["cross-site", "same-site", "?"])
def test_what_a_browser_says_about_the_site_counts_too(door, site):
    assert door.ask("GET", JOBS, Sec_Fetch_Site=site).status == 403
    assert door.ask("GET", JOBS, Sec_Fetch_Site="same-origin").status == 200


def test_options_are_told_without_a_word_about_origins(door):
    answer = door.ask("OPTIONS", JOBS)
    assert answer.status == 204 and answer.headers["Allow"] == "POST, GET"
    assert not [name for name in answer.headers if name.lower().startswith("access-control")]
    assert door.ask("OPTIONS", "/nowhere").status == 404


# ---- a browser ----

PAGE = """<!doctype html><title>evil</title><body><pre id=out>waiting</pre><script>
const node = "http://127.0.0.1:PORT", flow = JSON.stringify({flow: {steps: {a: {noop: true}}}});
const jobs = node + "/v1/contexts/default/jobs", token = "TOKEN", got = [];
async function attempt(name, what) {
    try {
        const answer = await what();
        got.push(name + ": " + answer.type + " " + answer.status + " " +
                 (await answer.text()).length);
    } catch (error) { got.push(name + ": refused"); }
}
function element(tag, fields) {
    return new Promise(done => {
        const e = Object.assign(document.createElement(tag), fields);
        e.onload = () => done(got.push(tag + ": loaded"));
        e.onerror = () => done(got.push(tag + ": refused"));
        document.body.append(e);
        setTimeout(done, 1500);
    });
}
async function all() {
    for (const mode of ["cors", "no-cors"]) {
        for (const credentials of ["omit", "include"]) {
            await attempt("get " + mode, () => fetch(jobs, {mode, credentials}));
            await attempt("simple post " + mode, () => fetch(jobs,
                {method: "POST", mode, credentials, body: flow,
                 headers: {"Content-Type": "text/plain"}}));
        }
    }
    await attempt("post", () => fetch(jobs, {method: "POST", body: flow,
        headers: {"Content-Type": "application/json"}}));
    await attempt("delete", () => fetch(jobs + "/x", {method: "DELETE"}));
    await attempt("stolen token", () => fetch(jobs, {method: "POST", body: flow,
        headers: {"Authorization": "Bearer " + token}}));
    await attempt("same origin", () => fetch(jobs, {mode: "same-origin"}));
    await attempt("beacon", async () => ({type: String(navigator.sendBeacon(jobs, flow)),
                                          status: 0, text: async () => ""}));
    await element("img", {src: jobs});
    await element("script", {src: node + "/v1/node"});
    await new Promise(done => {
        const source = new EventSource(jobs + "/x/events");
        source.onopen = () => done(got.push("events: open"));
        source.onerror = () => done(got.push("events: refused"));
    });
    const form = Object.assign(document.createElement("form"),
        {method: "POST", action: jobs, enctype: "text/plain", target: "frame"});
    const frame = Object.assign(document.createElement("iframe"), {name: "frame"});
    form.append(Object.assign(document.createElement("input"),
        {name: flow.slice(0, -1) + ',"run_id":"', value: '"}'}));
    document.body.append(frame, form);
    form.submit();
    await new Promise(done => setTimeout(done, 1000));
    document.getElementById("out").textContent = got.join("\\n") + "\\nDONE";
}
all();
</script>"""


@pytest.fixture(name="page")
def serve_page(door):
    """A web page of somebody else, on another port of this machine; it has even got the token."""
    text = PAGE.replace("PORT", door.port).replace("TOKEN", token(door.box)).encode()

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self):
            self.send_response(200)
            self.send_header("Content-Type", "text/html")
            self.end_headers()
            self.wfile.write(text)

        def log_message(self, *args):
            pass

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}/"
    server.shutdown()
    server.server_close()
    thread.join()


def test_a_web_page_in_a_browser_cannot_drive_the_node(door, page, tmp_path):
    browser = shutil.which("chromium") or shutil.which("chromium-browser")
    assert browser, "there is no chromium: run tools/setup"
    before = door.ask("GET", JOBS).json["jobs"]
    done = subprocess.run(
        [browser, "--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage",
         f"--user-data-dir={tmp_path}/profile", "--virtual-time-budget=20000", "--dump-dom", page],
        text=True, capture_output=True, timeout=120, check=False)
    told = done.stdout.partition("<pre id=\"out\">")[2].partition("</pre>")[0].splitlines()
    assert told[-1:] == ["DONE"], done.stdout[-2000:] + done.stderr[-2000:]
    for line in told[:-1]:
        name, _, result = line.partition(": ")
        # An opaque answer says nothing: not even whether there was one.
        assert result == "refused" or result.startswith("opaque 0 0") or name == "beacon", told
    assert len(told) >= 15
    assert any("opaque" in line for line in told), "the page has not even reached the node"
    assert door.ask("GET", JOBS).json["jobs"] == before


# ---- other users ----

TRY = """
import json, socket, sys
results = {}
for name, make in {
    "socket": lambda: (socket.socket(socket.AF_UNIX), sys.argv[1]),
    "proc": lambda: (socket.socket(socket.AF_UNIX), f"/proc/{sys.argv[3]}/cwd/data/node.sock"),
    "tcp": lambda: (socket.socket(), ("127.0.0.1", int(sys.argv[2]))),
}.items():
    try:
        sock, address = make()
        sock.settimeout(60)
        sock.connect(address)
        sock.sendall(b"GET /v1/contexts/default/jobs HTTP/1.1\\r\\nHost: localhost\\r\\n\\r\\n")
        results[name] = int(sock.recv(4096).split()[1])
    except OSError as error:
        results[name] = type(error).__name__
try:
    open(sys.argv[4]).read()
    results["token"] = "read"
except OSError as error:
    results["token"] = type(error).__name__
print(json.dumps(results))
"""


def as_another_user(*command):
    """The command under a second uid. Root can become anybody; others need a user namespace with
    a second id, which only root can map: there the test cannot be done and says so by failing."""
    assert os.geteuid() == 0, ("this test must become another user: run it as root, as in a "
                               "container, or `sudo -E`")
    return subprocess.run(["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", "--",
                           *command], text=True, capture_output=True, timeout=60, check=False)


@pytest.mark.parametrize("is_open", [False, True], ids=["as it is", "with an open folder"])
def test_another_user_of_this_machine_cannot_talk_to_the_node(door, tmp_path, is_open):
    """Not through the file system; and where the owner has opened that, not past the peer's uid."""
    socket_path, modes = door.box.socket, {}
    if is_open:
        path = socket_path
        while path != "/":
            modes[path] = os.stat(path).st_mode & 0o7777
            os.chmod(path, modes[path] | (0o006 if path == socket_path else 0o005))
            path = os.path.dirname(path)
    try:
        done = as_another_user("/usr/bin/python3", "-c", TRY, socket_path, door.port,
                               str(door.box.started[0].pid), os.path.join(door.box.data, "token"))
    finally:
        for path, mode in modes.items():
            os.chmod(path, mode)
    assert done.returncode == 0, done.stderr
    results = json.loads(done.stdout)
    assert results == {"socket": 403 if is_open else "PermissionError",
                       "proc": results["proc"], "tcp": 401, "token": "PermissionError"}
    assert results["proc"] in ("PermissionError", "FileNotFoundError", 403)
