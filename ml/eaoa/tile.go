package eaoa

// A tile is tileRows labeled examples by tileCols pool images: as many sums as fit
// into the vector registers.
const (
	tileRows = 6
	tileCols = 32
)

// productsPortable computes the tile of dot products of d features: a is d x
// tileRows, b is d x tileCols, out is tileRows x tileCols. Each sum runs over the
// features in order.
func productsPortable(d int, a, b []float32, out *[tileRows * tileCols]float32) {
	for r := 0; r < tileRows; r += 2 {
		for c := 0; c < tileCols; c += 4 {
			var s00, s01, s02, s03, s10, s11, s12, s13 float32
			for f := range d {
				x := (*[2]float32)(a[f*tileRows+r:])
				y := (*[4]float32)(b[f*tileCols+c:])
				s00 += x[0] * y[0]
				s01 += x[0] * y[1]
				s02 += x[0] * y[2]
				s03 += x[0] * y[3]
				s10 += x[1] * y[0]
				s11 += x[1] * y[1]
				s12 += x[1] * y[2]
				s13 += x[1] * y[3]
			}
			top, bottom := (*[4]float32)(out[r*tileCols+c:]), (*[4]float32)(out[(r+1)*tileCols+c:])
			*top = [4]float32{s00, s01, s02, s03}
			*bottom = [4]float32{s10, s11, s12, s13}
		}
	}
}

func anyAbovePortable(v *[tileCols]float32, floor float32) bool {
	for _, x := range v {
		if x > floor {
			return true
		}
	}
	return false
}
