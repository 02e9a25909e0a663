package server

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/pulsar-tc/pulsar-tc/internal/etcdtest"
	"github.com/pulsar-tc/pulsar-tc/internal/wireclient"
	"github.com/pulsar-tc/pulsar-tc/txn"
)

// askHTTP asks without following redirects.
func askHTTP(t *testing.T, address string, into any) (status int, location string) {
	t.Helper()
	client := http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	defer client.CloseIdleConnections()
	response, err := client.Get(address)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	if into != nil && response.StatusCode == http.StatusOK {
		if err := json.NewDecoder(response.Body).Decode(into); err != nil {
			t.Errorf("%s: %v", address, err)
		}
	}
	return response.StatusCode, response.Header.Get("Location")
}

// Any instance answers for all coordinators: what is about one it is asked of the leader, by a redirect, and what is about all is
// gathered from the leaders.
func TestAdministratorsOfSharedCoordinators(t *testing.T) {
	const count = 4
	etcd := etcdtest.Serve(t, "http", nil)
	set := shared(etcd, count)
	first, second := start(t, load(t, set...)), start(t, load(t, set...))
	evenly(t, count, first, second)
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	var ids [count]txn.ID
	for tc := range uint64(count) {
		client, err := wireclient.DialTC(ctx, first.ServiceURL(), tc)
		if err != nil {
			t.Fatal(err)
		}
		if ids[tc], err = client.Begin(ctx, tc, 60_000, ""); err != nil {
			t.Fatal(err)
		}
		_ = client.Close()
	}

	const path = "/admin/v3/transactions"
	for _, s := range []*Server{first, second} {
		var listed []struct {
			ID  uint64
			URL string `json:"brokerServiceUrl"`
		}
		if status, _ := askHTTP(t, s.WebURL()+path+"/coordinators", &listed); status != http.StatusOK || len(listed) != count {
			t.Fatalf("coordinators: %d, %v", status, listed)
		}
		at := map[string]int{}
		for _, one := range listed {
			at[one.URL]++
		}
		if at[first.ServiceURL()] != 2 || at[second.ServiceURL()] != 2 {
			t.Errorf("coordinators: %v", listed)
		}
		stats := map[string]struct{ State string }{}
		if status, _ := askHTTP(t, s.WebURL()+path+"/coordinatorStats", &stats); status != http.StatusOK || len(stats) != count {
			t.Errorf("coordinatorStats: %d, %v", status, stats)
		}
		for tc, one := range stats {
			if one.State != "Ready" {
				t.Errorf("coordinator %s is %s", tc, one.State)
			}
		}
		slow := map[string]struct{ Status string }{}
		if status, _ := askHTTP(t, s.WebURL()+path+"/slowTransactions/1", &slow); status != http.StatusOK || len(slow) != count {
			t.Errorf("slowTransactions: %d, %v", status, slow)
		}
		for tc, id := range ids {
			leads := s.group.Statuses()[tc].Serving
			for _, asked := range []string{
				fmt.Sprintf("%s/coordinatorStats?coordinatorId=%d", path, tc),
				fmt.Sprintf("%s/slowTransactions/1?coordinatorId=%d", path, tc),
				fmt.Sprintf("%s/transactionMetadata/%d/%d", path, id.Most, id.Least),
				fmt.Sprintf("/pulsar-tc/v1/transactions/%d/%d", id.Most, id.Least),
			} {
				status, location := askHTTP(t, s.WebURL()+asked, nil)
				switch {
				case leads && status != http.StatusOK:
					t.Errorf("%s at the leader: %d", asked, status)
				case !leads && (status != http.StatusTemporaryRedirect || !strings.HasSuffix(location, asked) || strings.HasPrefix(location, s.WebURL())):
					t.Errorf("%s elsewhere: %d to %q", asked, status, location)
				}
			}
		}
		if status, _ := askHTTP(t, s.WebURL()+"/pulsar-tc/v1/transactions/9/1", nil); status != http.StatusServiceUnavailable {
			t.Errorf("a transaction of no coordinator: %d", status)
		}
	}
	aborted, err := http.Post(fmt.Sprintf("%s%s/abortTransaction/%d/%d", first.WebURL(), path, ids[led(second)[0]].Most, ids[led(second)[0]].Least), "", nil)
	if err != nil || aborted.StatusCode != http.StatusNoContent {
		t.Errorf("abort behind a redirect: %v, %v", aborted, err)
	}
	_ = aborted.Body.Close()
	http.DefaultClient.CloseIdleConnections()
}
