// Package authentication finds out who a client is, on the binary port and on HTTP alike: by its certificate, by a JSON Web
// Token, or by a name and a password. A Service asks one Provider for each way.
//
// Invariants:
//
//   - Credentials that are shown and not valid are refused. The anonymous role is for clients that show none, or that show
//     some of a kind which is not configured, as in Pulsar.
//   - A refusal tells the client only that credentials are missing, not valid or expired; the cause is for the log.
//   - A role speaks for another only if it is one of the proxy roles, and no proxy role is ever spoken for.
//   - The keys and passwords that a Provider was made of appear in no text.
//
// Source: AuthenticationService, AuthenticationProviderToken, AuthenticationProviderTls, AuthenticationProviderBasic of
// Pulsar; ServerCnx.handleConnect, AuthenticationService.isValidOriginalPrincipal.
package authentication
