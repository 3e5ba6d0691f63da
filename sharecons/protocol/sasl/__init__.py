"""SASL: `authentication` is the exchange on one connection.

`mechanisms` has PLAIN, SCRAM and OAUTHBEARER; `credentials` what they need. `renewal`
has the times of a session, `tokens` the syntax of OAUTHBEARER tokens.
"""
