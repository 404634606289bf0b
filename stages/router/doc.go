// Package router is the stage that turns picks into plans. The device has chosen each row's experts
// and weights; the router sorts them by expert (stages.RoutePlan), so that an expert which several
// rows picked is read and computed once.
//
// It also predicts the picks of the next layers, and of the next row: from what the row before
// picked in the same layer, from the routers of the next layers applied to this layer's input, or
// from both. Each guess has a chance, which is what experience says of such guesses. The router
// owns the predictions of each sequence and layer.
package router
