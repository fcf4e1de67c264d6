//go:build !goexperiment.simd || !amd64

package eaoa

func products(d int, a, b []float32, out *[tileRows * tileCols]float32) {
	productsPortable(d, a, b, out)
}

func anyAbove(v *[tileCols]float32, floor float32) bool { return anyAbovePortable(v, floor) }
