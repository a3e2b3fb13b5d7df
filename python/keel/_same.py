"""Whether two stages of a step (_steps.py) do the same: one that is made several times in a loop."""

from ._branches import made_of, node_of, same_operations, same_values


class Same:
    """Whether two stages do the same, of other draws. inputs: by id of an input of the first, that of the second."""

    def __init__(self, steps, first, second):
        self.steps, self.keras, self.first, self.second = steps, steps.keras, first, second
        self.inputs, self.known = {}, {}

    def found(self):
        of = lambda stage: [(id(a.optimizer), list(map(id, a.variables)), a.clip) for a in stage.asked]
        pairs = zip(self.first.asked, self.second.asked)
        return of(self.first) == of(self.second) and all(self.groups(a.group, b.group) for a, b in pairs)

    def groups(self, a, b):
        same = a.layer is b.layer and a.training == b.training and self.tensors(a.loss, b.loss)
        return same and all(map(self.tensors, a.outputs, b.outputs))

    def tensors(self, s, t):
        if (id(s), id(t)) not in self.known:
            self.known[id(s), id(t)] = self.are_same(s, t)
        return self.known[id(s), id(t)]

    def are_same(self, s, t):
        tree, is_tensor = self.keras.tree, lambda a: isinstance(a, self.keras.KerasTensor)
        if not is_tensor(s) or not is_tensor(t):
            return same_values(s, t)
        kinds = [self.steps.kinds.get(id(a)) for a in (s, t)]
        if all(kinds):
            return self.inputs.setdefault(id(s), t) is t and self.are_same_kinds(*kinds)
        if any(kinds) or s._keras_history.tensor_index != t._keras_history.tensor_index:
            return False
        n, m = node_of(s), node_of(t)
        if n.is_input or m.is_input:
            return s is t
        args = [tree.flatten(made_of(node)) for node in (n, m)]
        same = same_operations(self.keras, n.operation, m.operation) and len(args[0]) == len(args[1])
        return same and all(map(self.tensors, *args))

    def are_same_kinds(self, a, b):
        kind, *what = a
        if kind != b[0]:
            return False
        if kind == "drawn":
            of = lambda draw: (draw.function, draw.shape, draw.args, draw.kwargs)
            return all(map(same_values, *(self.keras.tree.flatten(of(d)) for d in (what[0], b[1]))))
        if kind == "group":
            return what[1] == b[2] and self.groups(what[0], b[1])
        if kind == "data":
            return what[0] == b[1]
        if kind == "penalty":
            return list(map(id, what[0])) == list(map(id, b[1]))
        given = (what[0], b[1]) if kind == "joined" else (what, b[1:])
        return len(given[0]) == len(given[1]) and all(map(self.tensors, *given))
