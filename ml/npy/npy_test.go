package npy_test

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"winnow/ml/npy"
)

func TestWhatIsWrittenIsRead(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "a.npy")
	f32 := &npy.Array[float32]{Shape: []int{2, 3}, Data: []float32{1, -2.5, 3, 0, 1e-30, 6}}
	if err := npy.WriteFile(path, f32); err != nil {
		t.Fatal(err)
	}
	got, err := npy.ReadFile[float32](path)
	if diff := cmp.Diff(f32, got); err != nil || diff != "" {
		t.Errorf("%v %s", err, diff)
	}
	wide, err := npy.ReadFile[float64](path)
	if err != nil || wide.Data[1] != -2.5 {
		t.Errorf("float32 as float64: %v %v", wide, err)
	}
	if _, err := npy.ReadFile[int64](path); err == nil {
		t.Error("floats were read as integers")
	}

	var buf bytes.Buffer
	i64 := &npy.Array[int64]{Shape: []int{4}, Data: []int64{-1, 0, 1 << 40, 7}}
	if err := npy.Write(&buf, i64); err != nil {
		t.Fatal(err)
	}
	if at := bytes.IndexByte(buf.Bytes(), '\n') + 1; at%64 != 0 {
		t.Errorf("data starts at %d, which is not a multiple of 64", at)
	}
	back, err := npy.Read[int64](&buf)
	if diff := cmp.Diff(i64, back); err != nil || diff != "" {
		t.Errorf("%v %s", err, diff)
	}
	if err := npy.Write(&buf, &npy.Array[float64]{Shape: []int{2}, Data: []float64{1}}); err == nil {
		t.Error("one value was written as two")
	}
}

// file is a .npy file with the given header and payload.
func file(descr, fortran, shape string, payload []byte) []byte {
	h := fmt.Sprintf("{'descr': '%s', 'fortran_order': %s, 'shape': %s, }\n", descr, fortran, shape)
	b := append([]byte("\x93NUMPY\x01\x00"), binary.LittleEndian.AppendUint16(nil, uint16(len(h)))...)
	return append(append(b, h...), payload...)
}

func TestReadTypes(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		descr   string
		payload []byte
		want    float64
	}{
		{"|b1", []byte{1}, 1},
		{"|i1", []byte{0xfe}, -2},
		{"|u1", []byte{0xfe}, 254},
		{"<i2", []byte{0xfe, 0xff}, -2},
		{">i2", []byte{0xff, 0xfe}, -2},
		{"<u2", []byte{0xfe, 0xff}, 65534},
		{"<i4", []byte{1, 0, 0, 0}, 1},
		{">f4", binary.BigEndian.AppendUint32(nil, math.Float32bits(1.5)), 1.5},
		{"<f8", binary.LittleEndian.AppendUint64(nil, math.Float64bits(-0.1)), -0.1},
	} {
		a, err := npy.Read[float64](bytes.NewReader(file(c.descr, "False", "(1,)", c.payload)))
		if err != nil || len(a.Data) != 1 || a.Data[0] != c.want {
			t.Errorf("%s: got %v, %v; want %v", c.descr, a, err, c.want)
		}
	}
	scalar, err := npy.Read[int64](bytes.NewReader(file("|u1", "False", "()", []byte{9})))
	if err != nil || len(scalar.Shape) != 0 || scalar.Data[0] != 9 {
		t.Errorf("scalar: %v %v", scalar, err)
	}
}

func TestReadRefuses(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		b    []byte
		want string
	}{
		"empty":            {nil, "not a .npy"},
		"text":             {[]byte("hello, world"), "not a .npy"},
		"version":          {[]byte("\x93NUMPY\x09\x00"), "version 9"},
		"huge header":      {[]byte("\x93NUMPY\x02\x00\xff\xff\xff\xff"), "limit"},
		"cut header":       {file("<f4", "False", "(1,)", nil)[:30], "within its header"},
		"cut data":         {file("<f4", "False", "(2,)", make([]byte, 7)), "within its 2 values"},
		"trailing":         {file("<f4", "False", "(1,)", make([]byte, 5)), "more bytes"},
		"promises":         {file("<f8", "False", "(8000000000,)", make([]byte, 8)), "within"},
		"overflow":         {file("<f8", "False", "(4294967296, 4294967296)", nil), "more than"},
		"dimension":        {file("<f8", "False", "(99999999999999999999,)", nil), "dimension"},
		"dimensions":       {file("<f8", "False", "(1,1,1,1,1,1,1,1,1)", nil), "dimensions"},
		"fortran":          {file("<f4", "True", "(1, 1)", make([]byte, 4)), "Fortran"},
		"object":           {file("|O", "False", "(1,)", nil), "numeric"},
		"half":             {file("<f2", "False", "(1,)", make([]byte, 2)), "f2"},
		"too big unsigned": {file("<u8", "False", "(1,)", bytes.Repeat([]byte{255}, 8)), "beyond"},
	} {
		_, err := npy.Read[float32](bytes.NewReader(c.b))
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v; want it to say %q", name, err, c.want)
		}
	}
}

func FuzzRead(f *testing.F) {
	f.Add(file("<f4", "False", "(2, 1)", make([]byte, 8)))
	f.Add(file(">i2", "False", "(3,)", make([]byte, 6)))
	f.Add(file("<f8", "False", "(99999999,)", make([]byte, 8)))
	f.Fuzz(func(t *testing.T, b []byte) {
		a, err := npy.Read[float64](bytes.NewReader(b))
		if err != nil {
			return
		}
		n := 1
		for _, d := range a.Shape {
			n *= d
		}
		if n != len(a.Data) || n > len(b) {
			t.Fatalf("shape %v with %d values of %d bytes", a.Shape, len(a.Data), len(b))
		}
	})
}
