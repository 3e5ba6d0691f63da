"""Access: tokens, passwords, sessions, other origins, other hosts."""

import base64

import httpx
import pytest
from starlette.responses import PlainTextResponse

from sharecons.dashboard.guard import COOKIE, Access, Guard

pytestmark = pytest.mark.anyio

TOKEN, READ_TOKEN, PASSWORD = "secret-token", "reading-token", "pä:ss"
SECRETS = {"token": TOKEN, "read_token": READ_TOKEN, "passwords": {"ann": PASSWORD}}


async def app(scope, receive, send):
    user = scope["user"]
    await PlainTextResponse(f"{user.name}: {user.role}")(scope, receive, send)


def client(base="http://localhost:9933", **access):
    transport = httpx.ASGITransport(Guard(app, Access(**access)))
    return httpx.AsyncClient(transport=transport, base_url=base)


def basic(name, password):
    text = base64.b64encode(f"{name}:{password}".encode()).decode()
    return {"Authorization": f"Basic {text}"}


def bearer(token):
    return {"Authorization": f"Bearer {token}"}


@pytest.mark.parametrize(
    ("host", "status"),
    [
        ("localhost:9933", 200),
        ("127.0.0.1", 200),
        ("[::1]:9933", 200),
        ("LOCALHOST", 200),
        ("localhost.evil.example", 403),
        ("evil.example", 403),
        ("192.168.1.7:9933", 403),
        ("[::1", 403),
        ("", 403),
    ],
)
async def test_without_a_secret_only_names_of_this_machine_are_served(host, status):
    async with client() as http:
        response = await http.get("/", headers={"Host": host})

    assert status == response.status_code


@pytest.mark.parametrize(
    ("headers", "text"),
    [
        (bearer(TOKEN), "token: change"),
        (bearer(READ_TOKEN), "read token: read"),
        (basic("ann", PASSWORD), "ann: change"),
        (basic("bob", TOKEN), "token: change"),
        (basic("", READ_TOKEN), "read token: read"),
    ],
    ids=["token", "read token", "password", "token as password", "read token as one"],
)
async def test_secret_says_who_and_what_is_allowed(headers, text):
    async with client("http://kafka.example", **SECRETS) as http:
        response = await http.get("/", headers=headers)

    assert text == response.text


@pytest.mark.parametrize(
    "headers",
    [
        {},
        bearer(""),
        bearer("secret-toke"),
        bearer("secret-token2"),
        {b"Authorization": "Bearer sécret".encode()},
        basic("ann", "wrong"),
        basic("bob", PASSWORD),
        basic("", ""),
        {"Authorization": "Basic %%%"},
        {"Authorization": "Basic /////w=="},
        {"Authorization": "Digest x"},
        {"Authorization": TOKEN},
        {"Cookie": f"{COOKIE}="},
        {"Cookie": f"{COOKIE}=x.y"},
        {"Cookie": f"{COOKIE}={TOKEN}"},
    ],
    ids=str,
)
async def test_request_without_a_right_secret_is_refused(headers):
    async with client(**SECRETS) as http:
        response = await http.get("/", headers=headers)

    assert 401 == response.status_code
    assert "Basic" in response.headers["WWW-Authenticate"]


async def test_address_with_a_token_becomes_a_session_without_it():
    async with client(**SECRETS) as http:
        response = await http.get(f"/group?id=a%26b&token={READ_TOKEN}")
        cookie = response.headers["Set-Cookie"]
        inside = await http.get("/")

    assert 303 == response.status_code
    assert "http://localhost:9933/group?id=a%26b" == response.headers["Location"]
    assert {"HttpOnly", "SameSite=lax", "Path=/"} <= set(cookie.split("; "))
    assert READ_TOKEN not in cookie
    assert "read token: read" == inside.text


async def test_wrong_token_in_an_address_is_refused():
    async with client(**SECRETS) as http:
        response = await http.get("/?token=wrong")

    assert 401 == response.status_code
    assert "Set-Cookie" not in response.headers


async def test_session_ends_with_the_process():
    async with client(**SECRETS) as http:
        await http.get(f"/?token={TOKEN}")
        session = http.cookies[COOKIE]
    async with client(**SECRETS) as http:
        response = await http.get("/", headers={"Cookie": f"{COOKIE}={session}"})

    assert 401 == response.status_code


async def test_session_with_another_role_is_refused():
    async with client(**SECRETS) as http:
        await http.get(f"/?token={READ_TOKEN}")
        signature = http.cookies[COOKIE].partition(".")[2]
        http.cookies.clear()
        forged = base64.urlsafe_b64encode(b"change:token").decode()
        cookie = {"Cookie": f"{COOKIE}={forged}.{signature}"}
        response = await http.get("/", headers=cookie)

    assert 401 == response.status_code


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({"Sec-Fetch-Site": "same-origin"}, 200),
        ({"Sec-Fetch-Site": "cross-site"}, 403),
        ({"Sec-Fetch-Site": "same-site"}, 403),
        ({"Sec-Fetch-Site": "none"}, 403),
        ({"Sec-Fetch-Site": "cross-site", "Origin": "http://localhost:9933"}, 403),
        ({"Origin": "http://localhost:9933"}, 200),
        ({"Origin": "http://localhost:9934"}, 403),
        ({"Origin": "http://evil.example"}, 403),
        ({"Origin": "null"}, 403),
        ({}, 200),
        ({"Cookie": "a=b"}, 403),
    ],
    ids=str,
)
async def test_change_comes_from_a_page_of_this_origin(headers, status):
    async with client(allows_changes=True) as http:
        response = await http.post("/", headers=headers)

    assert status == response.status_code


@pytest.mark.parametrize(
    ("headers", "allows_changes", "status"),
    [
        (bearer(TOKEN), True, 200),
        (bearer(TOKEN), False, 403),
        (bearer(READ_TOKEN), True, 403),
        ({}, True, 401),
    ],
)
async def test_changes_need_permission_and_role(headers, allows_changes, status):
    async with client(**SECRETS, allows_changes=allows_changes) as http:
        for method in ("POST", "PUT", "PATCH", "DELETE"):
            response = await http.request(method, "/", headers=headers)
            assert status == response.status_code


@pytest.mark.parametrize("path", ["/", "/?token=wrong", f"/?token={TOKEN}"])
async def test_each_response_has_the_headers_of_a_closed_page(path):
    async with client(**SECRETS) as http:
        response = await http.get(path)

    policy = response.headers["Content-Security-Policy"]
    assert "default-src 'none'" in policy
    assert "frame-ancestors 'none'" in policy
    assert "unsafe" not in policy
    assert "DENY" == response.headers["X-Frame-Options"]
    assert "nosniff" == response.headers["X-Content-Type-Options"]
    assert "no-store" == response.headers["Cache-Control"]
