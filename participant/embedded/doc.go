// Package embedded ends transactions on topics of the same process.
package embedded
