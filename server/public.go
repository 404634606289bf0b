package server

import (
	"github.com/moeflux/moeflux-actor/server/access"
	"github.com/moeflux/moeflux-actor/server/models"
)

// Key is somebody who may ask.
type Key = access.Key

// Served is a model and the names by which clients ask for it.
type Served = models.Served

// Model is what the server needs of a model. *moeflux.Model is one.
type Model = models.Model

// Engine is what the server watches of a model's engine. *actors.Engine, which Model.Engine of the
// root package returns, is one.
type Engine = models.Engine
