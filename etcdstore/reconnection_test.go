package etcdstore

import (
	"net"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
)

// A member that was away for long is dialled again within seconds of its return. With gRPC's own waits the eighth dial comes after more
// than half a minute.
func TestReconnectionStaysQuick(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	conn, err := grpc.NewClient(listener.Addr().String(), grpc.WithTransportCredentials(insecure.NewCredentials()), grpc.WithConnectParams(reconnection))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	conn.Connect()
	if err := listener.(*net.TCPListener).SetDeadline(time.Now().Add(20 * time.Second)); err != nil {
		t.Fatal(err)
	}
	for dial := 1; dial <= 8; dial++ {
		refused, err := listener.Accept()
		if err != nil {
			t.Fatalf("dial %d: %v", dial, err)
		}
		_ = refused.Close()
		conn.Connect() // gRPC waits out its backoff, then is idle until asked
	}
}
