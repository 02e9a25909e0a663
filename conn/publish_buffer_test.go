package conn

import (
	"math/rand/v2"
	"testing"
)

// A queue of sizes gives them back in order and knows their sum, however long it lives, without growing.
func TestSizes(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	var queue sizes
	var model []int
	for range 100_000 {
		if len(model) < 1000 && random.IntN(2) == 0 {
			size := 1 + random.IntN(100)
			queue.push(size)
			model = append(model, size)
		} else if len(model) > 0 {
			if got := queue.pop(); got != model[0] {
				t.Fatalf("pop: %d, want %d", got, model[0])
			}
			model = model[1:]
		}
		sum := 0
		for _, size := range model {
			sum += size
		}
		if queue.len() != len(model) || queue.sum != sum {
			t.Fatalf("%d sizes of %d in all, want %d of %d", queue.len(), queue.sum, len(model), sum)
		}
	}
	if got := cap(queue.queue); got > 4096 {
		t.Errorf("room for %d sizes after at most 1000 at once", got)
	}
	if got := new(sizes).pop(); got != 0 {
		t.Errorf("an empty queue gives %d", got)
	}
}
