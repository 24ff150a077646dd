"""Verifies assertions of the JWT bearer flow with PyJWT, and makes some for the other side to refuse.

    verify_assertions.py verify PUBLIC_KEY AUDIENCE ISSUER SUBJECT NOW ASSERTION...
    verify_assertions.py forge PRIVATE_KEY AUDIENCE ISSUER SUBJECT NOW

`verify` prints the claims of each, a JSON line each, and fails at the first that PyJWT refuses. `forge`
prints a JSON object: names of mistakes, and an assertion that has each; "none" is the one without.
"""

import base64
import json
import sys

import jwt


def verify(key, audience, issuer, subject, now, assertions):
    for assertion in assertions:
        assert "=" not in assertion, "padding"
        claims = jwt.decode(
            assertion, key, algorithms=["RS256"], audience=audience, issuer=issuer, subject=subject,
            options={"require": ["exp", "iss", "sub", "aud"], "verify_exp": False},
        )
        assert type(claims["exp"]) is int and now < claims["exp"] <= now + 180, claims["exp"] - now
        print(json.dumps({"claims": claims, "header": jwt.get_unverified_header(assertion)}))


def forge(key, audience, issuer, subject, now):
    good = {"iss": issuer, "sub": subject, "aud": audience, "exp": now + 120}

    def signed(algorithm="RS256", secret=key, **changes):
        claims = {name: value for name, value in {**good, **changes}.items() if value is not None}
        return jwt.encode(claims, secret, algorithm=algorithm)

    def base64url(document):
        return base64.urlsafe_b64encode(json.dumps(document).encode()).rstrip(b"=").decode()

    none = signed()
    header, claims, signature = none.split(".")
    print(json.dumps({
        "none": none,
        "issuer": signed(iss="another"),
        "subject": signed(sub="another@example.com"),
        "audience": signed(aud="https://another.example"),
        "no audience": signed(aud=None),
        "expired": signed(exp=now - 1),
        "too long": signed(exp=now + 400),
        "no expiry": signed(exp=None),
        "HS256": signed(algorithm="HS256", secret="k" * 64),
        "RS512": signed(algorithm="RS512"),
        "no algorithm": base64url({"alg": "none"}) + "." + claims + ".",
        "other claims": header + "." + base64url(dict(good, exp=now + 121)) + "." + signature,
        "no signature": header + "." + claims + ".",
        "two parts": header + "." + claims,
        "no JSON": "e30.e30x.e30",
        "empty": "",
    }))


def main():
    command, path, audience, issuer, subject, now = sys.argv[1:7]
    with open(path, encoding="ascii") as file:
        key = file.read()
    if command == "verify":
        verify(key, audience, issuer, subject, int(now), sys.argv[7:])
    else:
        forge(key, audience, issuer, subject, int(now))


main()
