package model

// none marks the end of the free list.
const none = int32(-1)

// block is one KV block. A block without users stays in the free list and keeps its content until it is reused.
type block struct {
	users      int32
	prev, next int32
	hash       uint64
	hashed     bool
}

// pool owns the KV blocks: a free list in order of last use, and an index from content hash to block.
type pool struct {
	blocks     []block
	head, tail int32
	free       int
	index      map[uint64]int32
}

func newPool(n int) *pool {
	p := &pool{blocks: make([]block, n), head: none, tail: none, index: make(map[uint64]int32)}
	for i := range n {
		p.append(int32(i))
	}
	return p
}

// append puts a block without users at the end of the free list, where it is reused last.
func (p *pool) append(id int32) {
	b := &p.blocks[id]
	b.prev, b.next = p.tail, none
	if p.tail == none {
		p.head = id
	} else {
		p.blocks[p.tail].next = id
	}
	p.tail = id
	p.free++
}

// unlink takes a block out of the free list.
func (p *pool) unlink(id int32) {
	b := &p.blocks[id]
	if b.prev == none {
		p.head = b.next
	} else {
		p.blocks[b.prev].next = b.next
	}
	if b.next == none {
		p.tail = b.prev
	} else {
		p.blocks[b.next].prev = b.prev
	}
	p.free--
}

// take appends n fresh blocks to held. The caller has checked that n blocks are free.
func (p *pool) take(held []int32, n int) []int32 {
	for range n {
		id := p.head
		p.unlink(id)
		b := &p.blocks[id]
		b.users = 1
		if b.hashed {
			delete(p.index, b.hash)
			b.hashed = false
		}
		held = append(held, id)
	}
	return held
}

// share adds a user to a block found by its hash.
func (p *pool) share(id int32) {
	if p.blocks[id].users == 0 {
		p.unlink(id)
	}
	p.blocks[id].users++
}

// release drops one user from each block. The last block of a sequence goes first, so that the beginning, which others
// are more likely to share, is evicted last.
func (p *pool) release(held []int32) {
	for i := len(held) - 1; i >= 0; i-- {
		b := &p.blocks[held[i]]
		b.users--
		if b.users == 0 {
			p.append(held[i])
		}
	}
}

// remember makes a full block findable by its hash. Of two blocks with equal content the first stays in the index.
func (p *pool) remember(id int32, hash uint64) {
	if _, ok := p.index[hash]; ok {
		return
	}
	p.index[hash] = id
	p.blocks[id].hash, p.blocks[id].hashed = hash, true
}

// forget drops all content that can be found by hash.
func (p *pool) forget() {
	clear(p.index)
	for i := range p.blocks {
		p.blocks[i].hashed = false
	}
}

// used is the number of blocks that have a user.
func (p *pool) used() int { return len(p.blocks) - p.free }

// chain extends the hash of a prefix by the tokens of one more block: FNV-1a over 32-bit words.
func chain(prefix uint64, token int32) uint64 {
	return (prefix ^ uint64(uint32(token))) * 1099511628211
}

// chainStart is the hash of the empty prefix.
const chainStart = uint64(14695981039346656037)
