// Package npy reads and writes NumPy's .npy files: numbers in C order. What it
// reads is untrusted: a header may promise anything, and memory is only spent on
// values that are really there.
package npy

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"regexp"
	"strconv"
	"strings"
)

// Number is what an array may hold in memory.
type Number interface {
	float32 | float64 | int64
}

// Array is an n-dimensional array in C order.
type Array[T Number] struct {
	Shape []int
	Data  []T
}

// Limits of what is read.
const (
	MaxHeader   = 1 << 16
	MaxDims     = 8
	MaxElements = 1 << 33
)

var magic = []byte("\x93NUMPY")

// ReadFile reads the array in the file at path; see Read.
func ReadFile[T Number](path string) (*Array[T], error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	a, err := Read[T](f)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return a, nil
}

// Read reads one array and converts its elements to T: floats to floats, integers
// and booleans to anything. A floating-point file read as int64, an integer that
// int64 cannot hold, Fortran order, a short file and bytes after the end are
// errors.
func Read[T Number](r io.Reader) (*Array[T], error) {
	br := bufio.NewReaderSize(r, 1<<16)
	h, err := readHeader(br)
	if err != nil {
		return nil, err
	}
	if _, integer := any(T(0)).(int64); integer && h.kind == 'f' {
		return nil, errors.New("holds floating-point numbers; integers are expected")
	}
	n := 1
	for _, d := range h.shape {
		n *= d
	}
	const chunk = 1 << 16
	a := &Array[T]{Shape: h.shape, Data: make([]T, 0, allocate(r, n, h.size, chunk))}
	buf := make([]byte, min(n, chunk)*h.size)
	for len(a.Data) < n {
		b := buf[:min(n-len(a.Data), chunk)*h.size]
		if _, err := io.ReadFull(br, b); err != nil {
			return nil, fmt.Errorf("ends within its %d values: %w", n, err)
		}
		if a.Data, err = decode(a.Data, b, h); err != nil {
			return nil, err
		}
	}
	if _, err := br.ReadByte(); err != io.EOF {
		return nil, fmt.Errorf("has more bytes than its shape %v needs", h.shape)
	}
	return a, nil
}

// allocate is how many elements to make room for at once: all of them when the
// file is known to be long enough, else a few, and the rest as they arrive.
func allocate(r io.Reader, n, size, few int) int {
	if f, ok := r.(*os.File); ok {
		if info, err := f.Stat(); err == nil && info.Size() >= int64(n)*int64(size) {
			return n
		}
	}
	return min(n, few)
}

type header struct {
	kind  byte // f, i, u or b
	size  int  // bytes an element
	order binary.ByteOrder
	shape []int
}

var (
	descrPattern   = regexp.MustCompile(`'descr'\s*:\s*'([<>|=])([fiub])([0-9]{1,2})'`)
	fortranPattern = regexp.MustCompile(`'fortran_order'\s*:\s*(True|False)`)
	shapePattern   = regexp.MustCompile(`'shape'\s*:\s*\(([0-9, ]*)\)`)
)

func readHeader(r io.Reader) (header, error) {
	var h header
	start := make([]byte, 8)
	if _, err := io.ReadFull(r, start); err != nil || !bytes.Equal(start[:6], magic) {
		return h, errors.New("is not a .npy file")
	}
	var length int
	switch start[6] {
	case 1:
		var n uint16
		if err := binary.Read(r, binary.LittleEndian, &n); err != nil {
			return h, fmt.Errorf("ends within its header: %w", err)
		}
		length = int(n)
	case 2, 3:
		var n uint32
		if err := binary.Read(r, binary.LittleEndian, &n); err != nil {
			return h, fmt.Errorf("ends within its header: %w", err)
		}
		if n > MaxHeader {
			return h, fmt.Errorf("has a header of %d bytes; the limit is %d", n, MaxHeader)
		}
		length = int(n)
	default:
		return h, fmt.Errorf("is of .npy version %d; 1, 2 and 3 are known", start[6])
	}
	text := make([]byte, length)
	if _, err := io.ReadFull(r, text); err != nil {
		return h, fmt.Errorf("ends within its header: %w", err)
	}
	return parseHeader(string(text))
}

func parseHeader(text string) (header, error) {
	var h header
	descr := descrPattern.FindStringSubmatch(text)
	fortran := fortranPattern.FindStringSubmatch(text)
	shape := shapePattern.FindStringSubmatch(text)
	if descr == nil || fortran == nil || shape == nil {
		return h, fmt.Errorf("has a header that is not one of a numeric array: %.80q", text)
	}
	h.kind = descr[2][0]
	h.size, _ = strconv.Atoi(descr[3])
	h.order = binary.ByteOrder(binary.LittleEndian)
	if descr[1] == ">" {
		h.order = binary.BigEndian
	}
	switch known := string(h.kind) + strconv.Itoa(h.size); known {
	case "f4", "f8", "i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8", "b1":
	default:
		return h, fmt.Errorf("holds elements of type %s, which is not read", known)
	}
	n := 1
	for s := range strings.SplitSeq(shape[1], ",") {
		s = strings.TrimSpace(s)
		if s == "" {
			continue
		}
		d, err := strconv.Atoi(s)
		if err != nil || d > MaxElements {
			return h, fmt.Errorf("has a dimension of %s", s)
		}
		if h.shape = append(h.shape, d); len(h.shape) > MaxDims {
			return h, fmt.Errorf("has more than %d dimensions", MaxDims)
		}
		if d > 0 && n > MaxElements/d {
			return h, fmt.Errorf("has more than %d elements", MaxElements)
		}
		n *= d
	}
	if fortran[1] == "True" && len(h.shape) > 1 {
		return h, errors.New("is in Fortran order; save it with numpy.ascontiguousarray")
	}
	return h, nil
}

// decode appends the elements in b.
func decode[T Number](data []T, b []byte, h header) ([]T, error) {
	for ; len(b) > 0; b = b[h.size:] {
		var bits uint64
		switch h.size {
		case 1:
			bits = uint64(b[0])
		case 2:
			bits = uint64(h.order.Uint16(b))
		case 4:
			bits = uint64(h.order.Uint32(b))
		case 8:
			bits = h.order.Uint64(b)
		}
		var v T
		switch {
		case h.kind == 'f' && h.size == 4:
			v = T(math.Float32frombits(uint32(bits)))
		case h.kind == 'f':
			v = T(math.Float64frombits(bits))
		case h.kind == 'i':
			shift := 64 - 8*h.size
			v = T(int64(bits<<shift) >> shift)
		default:
			if bits > math.MaxInt64 {
				return nil, fmt.Errorf("holds %d, which is beyond a signed 64-bit number", bits)
			}
			v = T(int64(bits))
		}
		data = append(data, v)
	}
	return data, nil
}

// WriteFile writes the array to the file at path.
func WriteFile[T Number](path string, a *Array[T]) error {
	f, err := os.Create(path)
	if err != nil {
		return err
	}
	if err := Write(f, a); err != nil {
		f.Close()
		return fmt.Errorf("%s: %w", path, err)
	}
	return f.Close()
}

// Write writes the array as .npy version 1.0, little-endian.
func Write[T Number](w io.Writer, a *Array[T]) error {
	n := 1
	dims := make([]string, len(a.Shape))
	for i, d := range a.Shape {
		n *= d
		dims[i] = strconv.Itoa(d) + ","
	}
	if n != len(a.Data) {
		return fmt.Errorf("%d values do not fill the shape %v", len(a.Data), a.Shape)
	}
	descr := map[any]string{float32(0): "<f4", float64(0): "<f8", int64(0): "<i8"}[any(T(0))]
	text := fmt.Sprintf("{'descr': '%s', 'fortran_order': False, 'shape': (%s), }", descr, strings.Join(dims, " "))
	// The data starts at a multiple of 64, the header ends with a newline.
	text += strings.Repeat(" ", 63-(len(magic)+4+len(text))%64) + "\n"
	if len(text) > math.MaxUint16 {
		return fmt.Errorf("a header of %d bytes is too long", len(text))
	}
	bw := bufio.NewWriterSize(w, 1<<16)
	bw.Write(magic)
	bw.Write([]byte{1, 0})
	if err := binary.Write(bw, binary.LittleEndian, uint16(len(text))); err != nil {
		return err
	}
	bw.WriteString(text)
	for len(a.Data) > 0 { // binary.Write makes a copy: keep it small
		chunk := a.Data[:min(len(a.Data), 1<<14)]
		if err := binary.Write(bw, binary.LittleEndian, chunk); err != nil {
			return err
		}
		a = &Array[T]{Data: a.Data[len(chunk):]}
	}
	return bw.Flush()
}
