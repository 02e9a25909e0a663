package faults

import (
	"bufio"
	"io"
	"net"
	"strings"
	"syscall"
	"testing"
	"time"
)

// A SIGTERM drains: what is under way has its time. A second one ends the process at once.
func TestSignals(t *testing.T) {
	for name, test := range map[string]struct{ signals, code int }{
		"one SIGTERM": {1, 0}, "two": {2, -1},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t)
			// A request whose body never comes holds up the drain.
			slow, err := net.Dial("tcp", strings.TrimPrefix(f.Server.WebURL, "http://"))
			if err != nil {
				t.Fatal(err)
			}
			defer slow.Close()
			if _, err := io.WriteString(slow, "PUT /admin/v2/tenants/t HTTP/1.1\r\nHost: here\r\nExpect: 100-continue\r\nContent-Length: 9\r\n\r\n"); err != nil {
				t.Fatal(err)
			}
			if line, err := bufio.NewReader(slow).ReadString('\n'); err != nil || !strings.Contains(line, "100 Continue") {
				t.Fatalf("%q, %v", line, err)
			}
			for i := range test.signals {
				if err := f.Server.Signal(syscall.SIGTERM); err != nil {
					t.Fatal(err)
				}
				if i == 0 {
					f.await("it is stopping", func() bool { return f.Server.Said("a second signal ends at once") })
				}
			}
			select {
			case <-f.Server.Done():
			case <-time.After(waitTime):
				t.Fatal("runs on")
			}
			if code := f.Server.ExitCode(); code != test.code { // -1: ended by the signal
				t.Errorf("code %d, want %d", code, test.code)
			}
		})
	}
}
