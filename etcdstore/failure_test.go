package etcdstore

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/rs/zerolog"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
	"golang.org/x/sys/unix"
)

func TestZapBecomesZerolog(t *testing.T) {
	var out bytes.Buffer
	log := newZap(zerolog.New(&out), newFailure())
	log.Info("fine")
	log.With(zap.String("a", "1")).Warn("slow", zap.Int("b", 2))
	log.Error("bad", zap.Error(errors.New("cause")))
	log.Warn("failed to lock file")
	want := `{"level":"warn","component":"etcd","a":"1","b":2,"message":"slow"}
{"level":"error","component":"etcd","error":"cause","message":"bad"}
`
	if got := out.String(); got != want {
		t.Errorf("got\n%swant\n%s", got, want)
	}
}

func TestFatalErrorNamesTheCause(t *testing.T) {
	err := fatalError("failed to save", []zapcore.Field{zap.String("file", "x"), zap.Error(syscall.ENOSPC)})
	if !errors.Is(err, syscall.ENOSPC) || !strings.Contains(err.Error(), "failed to save") {
		t.Errorf("%v", err)
	}
}

func TestServerThatStopsFailsTheStore(t *testing.T) {
	store, err := Open(t.Context(), Options{Dir: t.TempDir(), Space: space}, zerolog.Nop())
	if err != nil {
		t.Fatal(err)
	}
	inside(store).server.Server.Stop()
	select {
	case err := <-store.Failed():
		if err == nil {
			t.Error("no reason")
		}
	case <-time.After(30 * time.Second):
		t.Fatal("not reported")
	}
	if err := store.Close(); err == nil {
		t.Error("close hides the failure")
	}
	if err := inside(store).lock.Release(); err != nil {
		t.Errorf("the directory was given up before the process ended: %v", err)
	}
}

// fullDiskDir names, in a child process, the data directory whose file system will refuse to grow files.
const fullDiskDir = "ETCDSTORE_FULL_DISK_DIR"

// A disk that is really full ends the process with the reason; what was acknowledged is there at the next start.
func TestFullDisk(t *testing.T) {
	dir := t.TempDir()
	child := exec.Command(os.Args[0])
	child.Env = append(os.Environ(), fullDiskDir+"="+dir)
	output, err := child.CombinedOutput()
	var exit *exec.ExitError
	if !errors.As(err, &exit) || exit.ExitCode() != 3 {
		t.Fatalf("%v, want exit code 3\n%s", err, output)
	}
	last := lastLine(string(output))
	count, reason, _ := strings.Cut(last, " ")
	acknowledged, err := strconv.Atoi(count)
	if err != nil || acknowledged == 0 || !strings.Contains(reason, "file too large") {
		t.Fatalf("%q, want a number of writes and the reason\n%s", last, output)
	}
	store := openStore(t, Options{Dir: dir})
	for i := range acknowledged {
		got, err := store.Client().Get(t.Context(), fmt.Sprint("key", i))
		if err != nil || len(got.Kvs) != 1 {
			t.Fatalf("write %d of %d is gone: %v", i, acknowledged, err)
		}
	}
}

func lastLine(text string) string {
	lines := strings.Split(strings.TrimSpace(text), "\n")
	return lines[len(lines)-1]
}

// fillDisk is the child process: it forbids files to grow, writes until the store fails, and says how far it came and why.
func fillDisk(dir string) {
	store, err := Open(context.Background(), Options{Dir: dir, Space: space}, zerolog.New(os.Stderr))
	if err != nil {
		fmt.Println("open:", err)
		os.Exit(1)
	}
	signal.Ignore(unix.SIGXFSZ)
	if err := unix.Setrlimit(unix.RLIMIT_FSIZE, &unix.Rlimit{Cur: mebibyte, Max: mebibyte}); err != nil {
		fmt.Println("limit file size:", err)
		os.Exit(1)
	}
	var acknowledged atomic.Int64
	go func() {
		for {
			key := fmt.Sprint("key", acknowledged.Load())
			if _, err := store.Client().Put(context.Background(), key, strings.Repeat("x", 64<<10)); err != nil {
				return
			}
			acknowledged.Add(1)
		}
	}()
	select {
	case reason := <-store.Failed():
		closed := make(chan error)
		go func() { closed <- store.Close() }()
		select {
		case err := <-closed:
			fmt.Println("close:", err)
		case <-time.After(time.Minute):
			fmt.Println("close hangs")
			os.Exit(2)
		}
		fmt.Println(acknowledged.Load(), reason)
		os.Exit(3)
	case <-time.After(time.Minute):
		fmt.Println("no failure")
		os.Exit(2)
	}
}
