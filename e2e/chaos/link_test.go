package chaos

import (
	"io"
	"net"
	"sync"
	"testing"
)

// link is the network between one person's browser and the server: a TCP proxy that
// can be cut, that can swallow everything, and that can lose one answer.
type link struct {
	listener net.Listener
	target   string

	mu    sync.Mutex
	state linkState
	lose  bool // the next answer
	open  map[net.Conn]struct{}
	lost  int // answers
}

type linkState int

const (
	linkUp     linkState = iota
	linkCut              // connections are refused, those that are open are closed
	linkSilent           // everything is swallowed: the sender waits until it gives up
)

// newLink connects to the server at target for as long as the test runs.
func newLink(t testing.TB, target string) *link {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	k := &link{listener: l, target: target, open: make(map[net.Conn]struct{})}
	go k.accept()
	t.Cleanup(func() { l.Close(); k.set(linkCut) })
	return k
}

func (k *link) base() string { return "http://" + k.listener.Addr().String() }

// set changes the link's state. Connections from before do not survive it, except
// that a silent link leaves the sender in the belief that they do.
func (k *link) set(state linkState) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.state = state
	if state == linkSilent {
		return
	}
	for c := range k.open {
		c.Close()
	}
	k.open = make(map[net.Conn]struct{})
}

// loseAnswer makes the link break when the next answer begins: the server has done
// what was asked, and whoever asked does not hear of it.
func (k *link) loseAnswer() {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.lose = true
}

// answersLost is how many answers the link has lost by loseAnswer.
func (k *link) answersLost() int {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.lost
}

func (k *link) accept() {
	for {
		client, err := k.listener.Accept()
		if err != nil {
			return
		}
		if !k.hold(client) {
			client.Close()
			continue
		}
		go k.serve(client)
	}
}

// serve carries one connection in both directions.
func (k *link) serve(client net.Conn) {
	defer k.drop(client)
	server, err := net.Dial("tcp", k.target)
	if err != nil {
		return
	}
	if !k.hold(server) {
		server.Close()
		return
	}
	defer k.drop(server)
	go func() {
		_ = k.carry(server, client, false)
		server.Close()
	}()
	_ = k.carry(client, server, true)
}

// carry copies bytes as far as the link's state lets it.
func (k *link) carry(to, from net.Conn, answers bool) error {
	buf := make([]byte, 16<<10)
	for {
		n, err := from.Read(buf)
		if n > 0 {
			silent, lost := k.passing(answers)
			if lost {
				return io.ErrClosedPipe
			}
			if !silent {
				if _, err := to.Write(buf[:n]); err != nil {
					return err
				}
			}
		}
		if err != nil {
			return err
		}
	}
}

// passing says what becomes of bytes that pass now.
func (k *link) passing(answers bool) (silent, lost bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if answers && k.lose {
		k.lose = false
		k.lost++
		return false, true
	}
	return k.state == linkSilent, false
}

// hold remembers an open connection, unless the link is cut.
func (k *link) hold(c net.Conn) bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.state == linkCut {
		return false
	}
	k.open[c] = struct{}{}
	return true
}

func (k *link) drop(c net.Conn) {
	c.Close()
	k.mu.Lock()
	defer k.mu.Unlock()
	delete(k.open, c)
}
