package topic

import "time"

// meter counts messages and their bytes, and knows how many there were a second in the last interval that was measured.
type meter struct {
	messages, bytes                 uint64
	measuredMessages, measuredBytes uint64
	messageRate, byteRate           float64
}

func (m *meter) add(messages uint32, bytes int) {
	m.messages += uint64(messages)
	m.bytes += uint64(bytes)
}

func (m *meter) measure(interval time.Duration) {
	m.messageRate = float64(m.messages-m.measuredMessages) / interval.Seconds()
	m.byteRate = float64(m.bytes-m.measuredBytes) / interval.Seconds()
	m.measuredMessages, m.measuredBytes = m.messages, m.bytes
}

// average is the bytes of one message.
func (m *meter) average() float64 {
	if m.messages == 0 {
		return 0
	}
	return float64(m.bytes) / float64(m.messages)
}

// measureInterval is the shortest time over which rates are measured. Pulsar measures over a minute.
// Source: broker.conf statsUpdateFrequencyInSecs.
const measureInterval = 30 * time.Second

// measure measures the rates of the topic and of all that are attached to it.
func (t *Topic) measure(now time.Time) {
	interval := now.Sub(t.measured)
	if interval < measureInterval {
		return
	}
	t.measured = now
	t.in.measure(interval)
	t.out.measure(interval)
	for _, p := range t.producers {
		p.in.measure(interval)
	}
	for _, s := range t.subscriptions {
		s.out.measure(interval)
		s.repeated.measure(interval)
		for _, c := range s.consumers {
			c.out.measure(interval)
			c.repeated.measure(interval)
		}
	}
}
