// Package handler turns Kafka requests into commands for the broker's actors, and their replies into Kafka responses: one numbered file per API.
//
// A handler is a pure translator. It reads the request, the metadata image and the configs it is given, asks the actors through the Ports, and answers
// the Call exactly once, at once or later. It starts no goroutine, reads no clock, writes no log line, knows no actor and no socket, and can be tested
// with an image and a fake of the Ports.
//
// # Where code runs
//
// A session is an actor. A handler runs on its session's turn, and so does every answer function it gives to a port: none of its variables needs a
// lock, and none may be touched from anywhere else. A handler never waits; it returns, and goes on in the answer function.
//
// # How a request goes
//
//  1. The session finds the API in wire's table, checks the version, decodes the body and looks the handler up with For.
//  2. It fills a Call: header, body, who asks (Client), and the Env of this moment (image, identity, time, ports).
//  3. The handler calls Respond, or asks ports and calls Respond in their answer functions, or calls Close when the connection is not to be used any
//     more (a request that Kafka answers by closing).
//  4. The session writes the answers in the order of the requests.
//
// Produce and Fetch have their own codec and hand their records over without copying; their halves that speak Kafka are here too (Produce, Fetch), the
// operations that wait are in the broker package.
//
// # Adding an API
//
// One row in wire's table of APIs, one file NN_name.go here with a function of type Func, one line in registry.go, golden bytes in wire. The header
// comment of the file says which versions are served and what differs from Kafka.
//
// # Glossary
//
//   - Call: one request being answered.
//   - Env: what a handler may know: the image and identity at the moment the request began.
//   - Port: one thing a handler may ask for: a decision of the controller, an answer of a replica, a producer id, the state of the directories.
//   - Answer function: called by a port exactly once, on the session's turn, never from inside the call that asked.
package handler
