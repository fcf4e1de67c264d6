package winnow

import (
	"encoding/json"
	"time"
)

// Split says what an image is for: queried and trained on, or held out.
type Split string

const (
	SplitPool Split = "pool"
	SplitTest Split = "test"
)

// Image is one image of a project; within it, its content hash is its identity.
type Image struct {
	ID            ImageID
	ProjectID     ProjectID
	SHA256        [32]byte
	MediaType     string // image/png, image/jpeg, ...
	Width, Height int    // after EXIF orientation
	Bytes         int64
	SourcePath    string          // where it was in the folder or ZIP; never shown to annotators
	Metadata      json.RawMessage // free-form
	Split         Split
	Verdict       Verdict // the current label; "" when nobody has decided it
	Class         int     // class index when Verdict is known, else -1
	CreatedAt     time.Time
}

// NewImage is an image on its way in: decoded, oriented and hashed.
type NewImage struct {
	Image
	Original  []byte // as imported
	Display   []byte // a browser-readable rendition, nil when the original is one
	Thumbnail []byte // JPEG, at most 256 pixels a side
	Pixels    []byte // RGB, PixelSize x PixelSize x 3, what the networks see
	PixelSize int
}

// ImportState is where an import stands.
type ImportState string

const (
	ImportRunning     ImportState = "running"
	ImportDone        ImportState = "done"
	ImportFailed      ImportState = "failed"
	ImportInterrupted ImportState = "interrupted" // cancelled, or its process died
)

// Import is one run of an import and its running report.
type Import struct {
	ID         ImportID
	ProjectID  ProjectID
	Source     string // file name of the ZIP or folder
	Split      Split
	Labeled    bool // class folders become labels
	State      ImportState
	Total      int64 // files seen that may be images; 0 until known
	Done       int64 // files handled, whatever came of them
	Added      int64
	Duplicates int64
	Failed     int64
	Ignored    int64           // files that are no images by their names, hidden files, links
	Problems   []ImportProblem // the first MaxImportProblems
	StartedAt  time.Time
	FinishedAt time.Time // zero while running
}

// MaxFolder is the longest path of a folder inside an import, in bytes.
const MaxFolder = 1024

// MaxImportProblems is how many failed files an import remembers by name.
const MaxImportProblems = 200

// ImportProblem is a file that did not go in, and why.
type ImportProblem struct {
	Path   string `json:"path"`
	Reason string `json:"reason"`
}
