// Package nn trains and runs the networks of a round: ResNet-18 in its CIFAR form, at
// any width and input size, from scratch by momentum SGD, with cross-entropy and, for
// the detector, the margin energy loss. The graphs are GoMLX's; the form they are
// written in is chosen for the backend behind one seam (form.go), the mathematics is
// the same for all. It knows no files, no database and no rounds.
package nn

import (
	"math"

	"winnow"
)

// Images are N square RGB images of Size pixels a side, as bytes: image by image, row
// by row, pixel by pixel, red green blue. len(RGB) is N*Size*Size*3.
type Images struct {
	N, Size int
	RGB     []byte
}

// At returns the bytes of image i.
func (im Images) At(i int) []byte {
	n := im.Size * im.Size * 3
	return im.RGB[i*n : (i+1)*n]
}

func (im Images) validate() error {
	if im.N < 0 || im.Size <= 0 && im.N > 0 || len(im.RGB) != im.N*im.Size*im.Size*3 {
		return winnow.Errorf(winnow.CodeInternal, "%d images of %dx%d have %d bytes.", im.N, im.Size, im.Size, len(im.RGB))
	}
	return nil
}

// Histogram counts the values of each channel: what MeanStd needs of images that are
// not all at hand at once. It is exact, and cheaper than floating point a pixel.
type Histogram [3][256]int64

// Add counts the pixels of images.
func (h *Histogram) Add(images Images) {
	for i := 0; i+2 < len(images.RGB); i += 3 {
		h[0][images.RGB[i]]++
		h[1][images.RGB[i+1]]++
		h[2][images.RGB[i+2]]++
	}
}

// MeanStd returns the mean and standard deviation of each channel over all pixels
// added, in units of 0..1. A channel that does not vary has standard deviation 1, so
// that normalising by it is safe; no images give mean 0 and standard deviation 1.
func (h *Histogram) MeanStd() (mean, std [3]float64) {
	std = [3]float64{1, 1, 1}
	var pixels int64
	for _, k := range h[0] {
		pixels += k
	}
	if pixels == 0 {
		return mean, std
	}
	n := float64(pixels)
	for c := range 3 {
		for v, k := range h[c] {
			mean[c] += float64(k) * float64(v) / 255
		}
		mean[c] /= n
		variance := 0.0
		for v, k := range h[c] {
			d := float64(v)/255 - mean[c]
			variance += float64(k) * d * d
		}
		if variance > 0 {
			std[c] = math.Sqrt(variance / n)
		}
	}
	return mean, std
}

// MeanStd is that of a histogram of the images.
func MeanStd(images Images) (mean, std [3]float64) {
	var h Histogram
	h.Add(images)
	return h.MeanStd()
}

// Config says what to train and how. Outputs is the number of logits; the other fields
// are the method's (see the settings of the same names).
type Config struct {
	Outputs    int
	Width      int  // channels of the first stage; features are 8*Width
	InputSize  int  // pixels a side; must be the images' Size
	AllowEmpty bool // train although some outputs have no example

	Epochs, Batch         int
	LearningRate, LRGamma float64
	LRStep                int  // epochs between drops of the learning rate
	OneCycle              bool // the learning rate goes up to LearningRate and down to 0 instead
	MinSteps              int  // more passes than Epochs where these make fewer steps
	Momentum, WeightDecay float64
	Nesterov              bool // look ahead along the momentum
	CropPad               int  // zero padding before the random crop
	Flip                  bool // random horizontal flip
	Energy                *Energy
	Mean, Std             [3]float64 // of the pool, in units of 0..1
	Seed                  int64
}

// Energy is the margin energy loss of the detector. The unknown class is the last
// output; all others are known.
type Energy struct {
	Weight        float64 // lambda_e
	MarginKnown   float64 // m_kno
	MarginUnknown float64 // m_unk
}

// Progress is reported after every step.
type Progress struct {
	Epoch, Epochs int     // finished epochs
	Step, Steps   int     // finished steps, of the whole training
	Loss          float64 // mean over the images of the last finished epoch; 0 before
	EpochDone     bool    // this step finished an epoch
}

// Output is what a network says of N images: Logits is N x Outputs, Feature N x
// Features (the average-pooled activations before the last layer), both row by row.
type Output struct {
	N, Outputs, Features int
	Logits, Feature      []float32
}
