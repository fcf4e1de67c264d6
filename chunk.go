package winnow

// A Chunk is a part of a round's pool that one worker scores at a time. It is the
// claim of a worker, too: Claim grows each time the chunk is given to somebody.
type Chunk struct {
	Round   RoundID
	Attempt int // of the round
	Number  int // from 0, in the order of the pool
	Claim   int
	Model   []byte // digest of the networks that score it
	Images  []ImageID
	// TakenOver says that another worker had it, and was lost.
	TakenOver bool
}

// Scoring is how far the scoring of a round's pool is.
type Scoring struct {
	Chunks, Scored int
	Images         int // in the chunks that are scored
}

// Checkpoints are a round's networks, by name.
type Checkpoints struct {
	Training []byte // a digest of what they were trained from; nil if that is not known
	Networks map[string][]byte
}
