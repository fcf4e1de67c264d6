//go:build goexperiment.simd && amd64

package eaoa

import "simd/archsimd"

var (
	hasAVX512 = archsimd.X86.AVX512()
	hasAVX2   = archsimd.X86.AVX2() && archsimd.X86.FMA()
)

func products(d int, a, b []float32, out *[tileRows * tileCols]float32) {
	switch {
	case hasAVX512:
		products512(d, a, b, out)
	case hasAVX2:
		products256(d, a, b, 0, out)
		products256(d, a, b, 16, out)
	default:
		productsPortable(d, a, b, out)
	}
}

// products512 keeps the tile in 12 registers of 16 sums; two more hold a feature
// of the 32 pool images, one a feature of a labeled example.
func products512(d int, a, b []float32, out *[tileRows * tileCols]float32) {
	var s00, s01, s10, s11, s20, s21, s30, s31, s40, s41, s50, s51 archsimd.Float32x16
	a, b = a[:d*tileRows], b[:d*tileCols]
	for len(a) >= tileRows && len(b) >= tileCols {
		y0, y1 := archsimd.LoadFloat32x16((*[16]float32)(b)), archsimd.LoadFloat32x16((*[16]float32)(b[16:]))
		x := archsimd.BroadcastFloat32x16(a[0])
		s00, s01 = x.MulAdd(y0, s00), x.MulAdd(y1, s01)
		x = archsimd.BroadcastFloat32x16(a[1])
		s10, s11 = x.MulAdd(y0, s10), x.MulAdd(y1, s11)
		x = archsimd.BroadcastFloat32x16(a[2])
		s20, s21 = x.MulAdd(y0, s20), x.MulAdd(y1, s21)
		x = archsimd.BroadcastFloat32x16(a[3])
		s30, s31 = x.MulAdd(y0, s30), x.MulAdd(y1, s31)
		x = archsimd.BroadcastFloat32x16(a[4])
		s40, s41 = x.MulAdd(y0, s40), x.MulAdd(y1, s41)
		x = archsimd.BroadcastFloat32x16(a[5])
		s50, s51 = x.MulAdd(y0, s50), x.MulAdd(y1, s51)
		a, b = a[tileRows:], b[tileCols:]
	}
	for i, s := range [...]archsimd.Float32x16{s00, s01, s10, s11, s20, s21, s30, s31, s40, s41, s50, s51} {
		s.Store((*[16]float32)(out[16*i:]))
	}
}

// products256 does columns col to col+15 of the tile. Its sums are those of
// products512, bit for bit: the same fused operations in the same order.
func products256(d int, a, b []float32, col int, out *[tileRows * tileCols]float32) {
	var s00, s01, s10, s11, s20, s21, s30, s31, s40, s41, s50, s51 archsimd.Float32x8
	a, b = a[:d*tileRows], b[:d*tileCols]
	for len(a) >= tileRows && len(b) >= tileCols {
		row := (*[16]float32)(b[col:])
		y0, y1 := archsimd.LoadFloat32x8((*[8]float32)(row[:8])), archsimd.LoadFloat32x8((*[8]float32)(row[8:]))
		x := archsimd.BroadcastFloat32x8(a[0])
		s00, s01 = x.MulAdd(y0, s00), x.MulAdd(y1, s01)
		x = archsimd.BroadcastFloat32x8(a[1])
		s10, s11 = x.MulAdd(y0, s10), x.MulAdd(y1, s11)
		x = archsimd.BroadcastFloat32x8(a[2])
		s20, s21 = x.MulAdd(y0, s20), x.MulAdd(y1, s21)
		x = archsimd.BroadcastFloat32x8(a[3])
		s30, s31 = x.MulAdd(y0, s30), x.MulAdd(y1, s31)
		x = archsimd.BroadcastFloat32x8(a[4])
		s40, s41 = x.MulAdd(y0, s40), x.MulAdd(y1, s41)
		x = archsimd.BroadcastFloat32x8(a[5])
		s50, s51 = x.MulAdd(y0, s50), x.MulAdd(y1, s51)
		a, b = a[tileRows:], b[tileCols:]
	}
	for i, s := range [...]archsimd.Float32x8{s00, s01, s10, s11, s20, s21, s30, s31, s40, s41, s50, s51} {
		s.Store((*[8]float32)(out[i/2*tileCols+col+i%2*8:]))
	}
}

func anyAbove(v *[tileCols]float32, floor float32) bool {
	switch {
	case hasAVX512:
		f := archsimd.BroadcastFloat32x16(floor)
		m := archsimd.LoadFloat32x16((*[16]float32)(v[:16])).Greater(f).ToBits() |
			archsimd.LoadFloat32x16((*[16]float32)(v[16:])).Greater(f).ToBits()
		return m != 0
	case hasAVX2:
		f := archsimd.BroadcastFloat32x8(floor)
		m := archsimd.LoadFloat32x8((*[8]float32)(v[:8])).Greater(f).ToBits() |
			archsimd.LoadFloat32x8((*[8]float32)(v[8:16])).Greater(f).ToBits() |
			archsimd.LoadFloat32x8((*[8]float32)(v[16:24])).Greater(f).ToBits() |
			archsimd.LoadFloat32x8((*[8]float32)(v[24:])).Greater(f).ToBits()
		return m != 0
	default:
		return anyAbovePortable(v, floor)
	}
}
