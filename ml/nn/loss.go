package nn

import (
	"github.com/gomlx/gomlx/core/graph"
)

// crossEntropy is the mean over the batch of -log softmax(logits)[label]; logits and
// the one-hot labels are [n, outputs].
func crossEntropy(logits, oneHot *graph.Node) *graph.Node {
	picked := graph.ReduceSum(graph.Mul(graph.LogSoftmax(logits, 1), oneHot), 1)
	return graph.Neg(graph.ReduceAllMean(picked))
}

// energyLoss is the margin energy loss: with E = -logsumexp of the known logits, the
// mean over the batch's knowns of max(0, E - MarginKnown)^2 plus the mean over its
// unknowns of max(0, MarginUnknown - E)^2. A group that is absent adds 0. Unknown is
// the last output.
func energyLoss(logits, oneHot *graph.Node, e Energy) *graph.Node {
	known := logits.Shape().Dimensions[1] - 1
	energy := graph.Neg(logSumExp(graph.Slice(logits, graph.AxisRange(), graph.AxisRange(0, known))))
	isUnknown := graph.Reshape(graph.Slice(oneHot, graph.AxisRange(), graph.AxisRange(known, known+1)), -1)
	group := func(member, excess *graph.Node) *graph.Node {
		excess = graph.MaxScalar(excess, 0)
		n := graph.MaxScalar(graph.ReduceAllSum(member), 1)
		return graph.Div(graph.ReduceAllSum(graph.Mul(member, graph.Mul(excess, excess))), n)
	}
	return graph.Add(
		group(graph.OneMinus(isUnknown), graph.AddScalar(energy, -e.MarginKnown)),
		group(isUnknown, graph.AddScalar(graph.Neg(energy), e.MarginUnknown)))
}

// logSumExp over axis 1 of [n, c], to [n].
func logSumExp(x *graph.Node) *graph.Node {
	top := graph.StopGradient(graph.ReduceMax(x, 1))
	shifted := graph.Sub(x, graph.InsertAxes(top, 1))
	return graph.Add(top, graph.Log(graph.ReduceSum(graph.Exp(shifted), 1)))
}

// totalLoss is cross-entropy, for the detector plus the weighted energy loss.
func totalLoss(logits, oneHot *graph.Node, e *Energy) *graph.Node {
	loss := crossEntropy(logits, oneHot)
	if e != nil && e.Weight != 0 {
		loss = graph.Add(loss, graph.MulScalar(energyLoss(logits, oneHot, *e), e.Weight))
	}
	return loss
}
