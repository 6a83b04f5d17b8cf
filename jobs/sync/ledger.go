package sync

import (
	"crypto/sha256"
	"encoding/hex"
	"sync"
	"time"
)

const (
	// checkpointParts and checkpointEvery bound what a killed pod loses of a
	// file: that many parts, or what came in that time.
	checkpointParts = 8
	checkpointEvery = 10 * time.Second
)

// ledger follows the parts of one upload. Parts are hashed in order and arrive
// at the store in any order; a checkpoint can be made behind a part once both
// happened for it and for all before it.
type ledger struct {
	mu     sync.Mutex
	hashed map[int]*state
	sent   map[int][]byte
	// parts is how many parts from the first on are both, sums their digests,
	// latest the states behind the last that has any.
	sums   [][]byte
	latest *state
	// ready is the number of parts that latest covers.
	ready int

	// saving is held by the one that writes; saved and at are its last.
	saving sync.Mutex
	saved  int
	at     time.Time
}

func newLedger(now time.Time) *ledger {
	return &ledger{hashed: make(map[int]*state), sent: make(map[int][]byte), at: now}
}

// begin continues behind a checkpoint whose parts have the given digests.
func (l *ledger) begin(from *state, sums [][]byte) {
	l.latest, l.sums, l.ready, l.saved = from, sums, len(sums), len(sums)
}

// hash notes the states behind a part, which may be nil.
func (l *ledger) hash(number int, behind *state) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.hashed[number] = behind
	l.advance()
}

// send notes that the store holds a part, with the digest that it states.
func (l *ledger) send(number int, sum []byte) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.sent[number] = sum
	l.advance()
}

func (l *ledger) advance() {
	for {
		next := len(l.sums) + 1
		behind, hashed := l.hashed[next]
		sum := l.sent[next]
		if !hashed || sum == nil {
			return
		}
		delete(l.hashed, next)
		delete(l.sent, next)
		l.sums = append(l.sums, sum)
		if behind != nil {
			l.latest, l.ready = behind, next
		}
	}
}

// position is the last point at which a checkpoint can be made: the number of
// parts, the digest over theirs, and the states; the states are nil at 0.
func (l *ledger) position() (parts int, sums string, behind *state) {
	l.mu.Lock()
	defer l.mu.Unlock()
	sum := sha256.New()
	for _, raw := range l.sums[:l.ready] {
		sum.Write(raw)
	}
	return l.ready, hex.EncodeToString(sum.Sum(nil)), l.latest
}

// due says whether it is time for a checkpoint. Whoever gets true must call
// done with the number of parts that it saved.
func (l *ledger) due(now time.Time, every time.Duration) bool {
	if !l.saving.TryLock() {
		return false
	}
	l.mu.Lock()
	ready := l.ready
	l.mu.Unlock()
	if gained := ready - l.saved; gained >= checkpointParts || gained > 0 && now.Sub(l.at) >= every {
		return true
	}
	l.saving.Unlock()
	return false
}

func (l *ledger) done(parts int, now time.Time) {
	l.saved, l.at = parts, now
	l.saving.Unlock()
}
