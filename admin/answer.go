package admin

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/pulsar-tc/pulsar-tc/txn"
)

// Failure is the body of every error.
type Failure struct {
	Reason string `json:"reason"`
}

// ElsewhereError says that another process can tell of a transaction. A client is sent there: to the URL with TLS if it came with TLS,
// so that its credentials do not go in clear, or if that is the only one. One of both is not empty.
type ElsewhereError struct {
	WebURL, WebURLTLS string
	// Followed is how long after its death another process leads in its place.
	Followed time.Duration
}

func (e *ElsewhereError) Error() string {
	return fmt.Sprintf("the transaction's coordinator is led by %s; if that instance has died, another one leads within %v of that",
		cmp.Or(e.WebURL, e.WebURLTLS), e.Followed)
}

func (e *ElsewhereError) baseFor(r *http.Request) string {
	if r.TLS != nil {
		return cmp.Or(e.WebURLTLS, e.WebURL)
	}
	return cmp.Or(e.WebURL, e.WebURLTLS)
}

func (h *handler) fail(w http.ResponseWriter, r *http.Request, code int, err error) {
	var elsewhere *ElsewhereError
	if errors.As(err, &elsewhere) {
		w.Header().Set("Location", elsewhere.baseFor(r)+r.URL.RequestURI())
		code = http.StatusTemporaryRedirect
	}
	h.write(w, code, Failure{Reason: explain(err)})
}

// Refuse answers a request that does not reach the handler, in the form of the handler's own errors.
func Refuse(w http.ResponseWriter, code int, err error) {
	text, encodeErr := json.Marshal(Failure{Reason: err.Error()})
	if encodeErr != nil {
		http.Error(w, encodeErr.Error(), http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(code)
	w.Write(append(text, '\n')) // a client that is gone needs no answer
}

// explain is the text of err for an operator, who is told more than the wire's texts say.
func explain(err error) string {
	var notFound *txn.NotFoundError
	if errors.As(err, &notFound) {
		return fmt.Sprintf("%s: not found: never opened, or its outcome is no longer kept", notFound.ID)
	}
	var status *txn.StatusError
	if errors.As(err, &status) {
		return fmt.Sprintf("%s has ended: it is %s", status.ID, status.Got)
	}
	return err.Error()
}

func (h *handler) write(w http.ResponseWriter, code int, body any) {
	text, err := json.MarshalIndent(body, "", "  ")
	if err != nil {
		h.log.Error().Err(err).Msg("could not encode an answer")
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(code)
	h.send(w, append(text, '\n'))
}

// writeList answers a JSON array with a line for each transaction, encoded one by one: the text of a long list is never
// held as a whole.
func (h *handler) writeList(w http.ResponseWriter, transactions []Transaction) {
	w.Header().Set("Content-Type", "application/json")
	separator := "["
	for i := range transactions {
		line, err := json.Marshal(&transactions[i])
		if err != nil { // the array stays open, which no parser takes for the whole list
			h.log.Error().Err(err).Str("txn", transactions[i].ID).Msg("could not encode a transaction")
			return
		}
		if !h.send(w, append([]byte(separator), line...)) {
			return
		}
		separator = ",\n"
	}
	if len(transactions) == 0 {
		h.send(w, []byte("[]\n"))
		return
	}
	h.send(w, []byte("]\n"))
}

func (h *handler) send(w http.ResponseWriter, text []byte) bool {
	_, err := w.Write(text)
	if err != nil {
		h.log.Debug().Err(err).Msg("could not send an answer")
	}
	return err == nil
}
