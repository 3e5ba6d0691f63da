"""SASL: `authentication` is the exchange on one connection.

`mechanisms` has PLAIN, SCRAM and OAUTHBEARER; `credentials` what they need.
"""
