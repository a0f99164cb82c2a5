package config

// value resolves a key without its chain and parses it. What is stored was checked when it was set; should it not parse all the same (a newer version
// may have allowed more), the default stands in.
func (s Stack) value(t *Table, name string) Value {
	k, ok := t.Lookup(name)
	if !ok {
		panic("config: no key " + name)
	}
	if text, ok := s.text(k); ok {
		if v, problem := parse(k.Type, text); problem == "" {
			return v
		}
	}
	if k.Null {
		return Value{}
	}
	v, problem := parse(k.Type, k.Default)
	if problem != "" {
		panic("config: default of " + name + ": " + problem)
	}
	return v
}

// text finds the strongest layer that has a value, in the unit of the key.
func (s Stack) text(k *Key) (string, bool) {
	if k.table != brokerTable {
		if v, ok := s.Override.Get(k.Name); ok {
			return v, true
		}
	}
	for _, layer := range [...]Set{s.Broker, s.Cluster, s.Static} {
		if len(layer) == 0 {
			continue
		}
		if k.table == brokerTable {
			if v, ok := layer.Get(k.Name); ok {
				return v, true
			}
		}
		for _, syn := range k.Synonyms {
			if v, ok := layer.Get(syn.Name); ok {
				return scale(v, syn.Factor), true
			}
		}
	}
	return "", false
}

// TopicInt returns the effective value of a topic key that is a whole number.
func (s Stack) TopicInt(name string) int64 { return s.value(topicTable, name).Int }

// TopicBool returns the effective value of a topic key that is true or false.
func (s Stack) TopicBool(name string) bool { return s.value(topicTable, name).Bool }

// TopicText returns the effective value of a topic key as its canonical text.
func (s Stack) TopicText(name string) string { return s.value(topicTable, name).Text }

// BrokerInt returns the effective value of a broker key that is a whole number.
func (s Stack) BrokerInt(name string) int64 { return s.value(brokerTable, name).Int }

// BrokerBool returns the effective value of a broker key that is true or false.
func (s Stack) BrokerBool(name string) bool { return s.value(brokerTable, name).Bool }

// BrokerText returns the effective value of a broker key as its canonical text.
func (s Stack) BrokerText(name string) string { return s.value(brokerTable, name).Text }
