package pulsaradmin

import (
	"errors"
	"fmt"
	"net/http"
	"strconv"

	"github.com/pulsar-tc/pulsar-tc/cluster"
	"github.com/pulsar-tc/pulsar-tc/peer"
)

// LedElsewhereError says that another instance leads the coordinator that is asked about.
type LedElsewhereError struct {
	TC     uint64
	Leader cluster.Instance
}

func (e *LedElsewhereError) Error() string {
	return fmt.Sprintf("transaction coordinator %d is led by %s", e.TC, e.Leader.ServiceURL)
}

// atLeader answers for one of several coordinators: here if it is led here, else with what its leader answers to the same request
// about that one. An instance that was asked asks no other.
func atLeader[T any](c *call, tc uint64, here func(tc uint64) (T, error)) (answer T, err error) {
	err = c.h.Transactions.LedHere(c.Context(), tc)
	var led *LedElsewhereError
	if err == nil {
		return here(tc)
	}
	if c.instance || !errors.As(err, &led) {
		return answer, err
	}
	request := peer.WebRequest{Method: http.MethodGet, Target: c.URL.EscapedPath() + "?coordinatorId=" + strconv.FormatUint(tc, 10)}
	err = c.passOn(c.Context(), led.Leader, request, fmt.Sprint("coordinator ", tc), &answer)
	return answer, err
}
