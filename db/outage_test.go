package db_test

import (
	"context"
	"io"
	"net"
	"net/url"
	"sync"
	"testing"

	"winnow"
	"winnow/db"
	"winnow/db/dbtest"
)

// TestAServerThatDies ends the connection in the middle of a statement without a last
// word, as a server does that is killed: that is an outage, to be tried again, and
// no fault of the program. The store finds the server again by itself.
func TestAServerThatDies(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	address := dbtest.URL(t)
	direct, err := db.Open(ctx, address, db.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(direct.Close)
	admin := dbtest.User(t, direct, "admin")
	project := dbtest.Project(t, direct, admin.ID, dbtest.Settings(), 1, 0)

	wire := newWire(t, address)
	s, err := db.Open(ctx, wire.url, db.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Close)

	tx, err := direct.Pool().Begin(ctx)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = tx.Rollback(context.Background()) }()
	if _, err := tx.Exec(ctx, `SELECT FROM projects FOR UPDATE`); err != nil {
		t.Fatal(err)
	}
	answer := make(chan error, 1)
	go func() { answer <- s.UpdateProject(ctx, admin.ID, project) }()
	awaitLockWait(t, direct)
	wire.cut()
	wantCode(t, <-answer, winnow.CodeUnavailable)

	if _, err := s.Project(ctx, project.ID); err != nil {
		t.Errorf("after the outage: %v", err)
	}
}

// awaitLockWait returns once a transaction of the store's database waits for another.
func awaitLockWait(t *testing.T, s *db.Store) {
	t.Helper()
	for waits := false; !waits; {
		if err := s.Pool().QueryRow(t.Context(), `
			SELECT EXISTS (SELECT FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock')`).Scan(&waits); err != nil {
			t.Fatal(err)
		}
	}
}

// wire passes bytes on to a Postgres server, until it is cut.
type wire struct {
	url string // of the same database, by way of the wire

	mu    sync.Mutex
	conns []net.Conn // of the clients
}

func newWire(t *testing.T, address string) *wire {
	t.Helper()
	config, err := url.Parse(address)
	if err != nil {
		t.Fatal(err)
	}
	query := config.Query()
	network, server := "tcp", config.Host
	if dir := query.Get("host"); dir != "" {
		network, server = "unix", dir+"/.s.PGSQL.5432"
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { listener.Close() })
	query.Del("host")
	query.Set("sslmode", "disable")
	config.Host, config.RawQuery = listener.Addr().String(), query.Encode()
	w := &wire{url: config.String()}
	go func() {
		for {
			client, err := listener.Accept()
			if err != nil {
				return
			}
			backend, err := net.Dial(network, server)
			if err != nil {
				client.Close()
				continue
			}
			w.mu.Lock()
			w.conns = append(w.conns, client)
			w.mu.Unlock()
			pass := func(to, from net.Conn) {
				defer to.Close()
				_, _ = io.Copy(to, from)
			}
			go pass(client, backend)
			go pass(backend, client)
		}
	}()
	return w
}

// cut ends all connections that there are; new ones are passed on.
func (w *wire) cut() {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, c := range w.conns {
		c.Close()
	}
	w.conns = nil
}
