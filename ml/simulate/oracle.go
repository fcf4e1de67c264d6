package simulate

import (
	"encoding/csv"
	"errors"
	"io"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"

	"winnow"
)

// Confusion is how people label: of images of class i, Share[i][j] are called j.
type Confusion struct {
	Share [][]float64
}

// ReadConfusion reads a table of counts, one row a true class, one column a class
// that people chose; the first row and column hold the names of classes, in any
// order.
func ReadConfusion(r io.Reader, classes []string) (*Confusion, error) {
	invalid := func(format string, args ...any) error { return winnow.Invalid("annotators", format, args...) }
	reader := csv.NewReader(r)
	rows, err := reader.ReadAll()
	if err != nil {
		return nil, &winnow.Error{Code: winnow.CodeInvalid, Field: "annotators", Message: "It is not a CSV table.", Err: err}
	}
	if len(rows) < 2 {
		return nil, invalid("The table has no rows.")
	}
	number := func(name string) int {
		return slices.IndexFunc(classes, func(c string) bool { return strings.EqualFold(c, strings.TrimSpace(name)) })
	}
	c := &Confusion{Share: make([][]float64, len(classes))}
	for _, row := range rows[1:] {
		from := number(row[0])
		if from < 0 {
			return nil, invalid("Row %q is not a class of the data.", row[0])
		}
		if c.Share[from] != nil {
			return nil, invalid("Row %q is there twice.", row[0])
		}
		share, sum := make([]float64, len(classes)), 0.0
		for j, cell := range row[1:] {
			to := number(rows[0][j+1])
			if to < 0 {
				return nil, invalid("Column %q is not a class of the data.", rows[0][j+1])
			}
			n, err := strconv.ParseFloat(strings.TrimSpace(cell), 64)
			if err != nil || !(n >= 0 && n <= 1e18) {
				return nil, invalid("Row %q has %q in column %q; expected a count.", row[0], cell, rows[0][j+1])
			}
			share[to] += n
			sum += n
		}
		if sum == 0 {
			return nil, invalid("Row %q has no counts.", row[0])
		}
		for j := range share {
			share[j] /= sum
		}
		c.Share[from] = share
	}
	for i, share := range c.Share {
		if share == nil {
			return nil, invalid("There is no row for class %q.", classes[i])
		}
	}
	return c, nil
}

// errOutOfPool is a query for what is not in the pool: a defect, not a user's mistake.
var errOutOfPool = errors.New("the query names an image outside the pool")

// oracle labels images: it knows their classes and, given a confusion, errs as
// people do.
type oracle struct {
	truth     []int       // class number by image
	index     map[int]int // class number to index among the known classes
	confusion *Confusion
}

// label is what the annotator of an image says: an index of a known class, or the
// number of known classes for unknown. It depends on the image and the seed alone:
// asked again, the annotator says the same.
func (o *oracle) label(image int, seed int64) int {
	class := o.truth[image]
	if o.confusion != nil {
		u := rand.New(rand.NewPCG(uint64(seed), uint64(image)+1)).Float64()
		for c, share := range o.confusion.Share[class] {
			if u -= share; u < 0 {
				class = c
				break
			}
		}
	}
	return o.known(class)
}

// known is the index of a class number among the known classes, or their number.
func (o *oracle) known(class int) int {
	if c, ok := o.index[class]; ok {
		return c
	}
	return len(o.index)
}
