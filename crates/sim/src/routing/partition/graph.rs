//! A graph with weights, in flat vectors.

/// An undirected graph. Edges between the same two nodes are one edge with the sum of their weights.
pub(super) struct Graph {
    /// The weight of each node: the work that it causes.
    pub(super) weights: Vec<u64>,
    /// The index of the first edge of each node, and at the end the number of edges.
    starts: Vec<u32>,
    /// The other end and the weight of each edge, by node.
    edges: Vec<(u32, u64)>,
}

impl Graph {
    /// The graph with these edges, of which each is given once. Edges from a node to itself do not count.
    pub(super) fn of(weights: Vec<u64>, ends: &[(u32, u32, u64)]) -> Graph {
        let mut starts = vec![0; weights.len() + 1];
        for &(a, b, _) in ends {
            starts[a as usize + 1] += 1;
            starts[b as usize + 1] += 1;
        }
        accumulate(&mut starts);
        let mut next = starts.clone();
        let mut edges = vec![(0, 0); 2 * ends.len()];
        for &(a, b, weight) in ends {
            for (from, to) in [(a, b), (b, a)] {
                edges[next[from as usize] as usize] = (to, weight);
                next[from as usize] += 1;
            }
        }
        let apart: Vec<u32> = (0..weights.len() as u32).collect();
        Graph { weights, starts, edges }.contracted(&apart, apart.len())
    }

    /// The number of nodes.
    pub(super) fn len(&self) -> usize {
        self.weights.len()
    }

    /// The other end and the weight of each edge of `node`.
    pub(super) fn edges(&self, node: usize) -> &[(u32, u64)] {
        &self.edges[self.starts[node] as usize..self.starts[node + 1] as usize]
    }

    /// The number of edges, counted at both ends.
    pub(super) fn ends(&self) -> usize {
        self.edges.len()
    }

    /// The weight of the edges between nodes with different labels.
    pub(super) fn cut(&self, labels: &[u32]) -> u64 {
        let is_cut = |node: usize, to: u32| node < to as usize && labels[node] != labels[to as usize];
        let of_node =
            |node| self.edges(node).iter().filter(move |&&(to, _)| is_cut(node, to)).map(|&(_, weight)| weight);
        (0..self.len()).flat_map(of_node).sum()
    }

    /// Makes edges the heavier, the nearer they are to one of the nodes with a `mark`: twice as heavy at such a node,
    /// one and a half times one hop further on, and so on.
    pub(super) fn favour_cuts_far_from(&mut self, mark: &[bool]) {
        let mut distances: Vec<u64> = mark.iter().map(|&mark| if mark { 0 } else { u64::MAX }).collect();
        let mut found: Vec<u32> = (0..self.len() as u32).filter(|&node| mark[node as usize]).collect();
        let mut next = 0;
        while let Some(&node) = found.get(next) {
            next += 1;
            for &(to, _) in self.edges(node as usize) {
                if distances[to as usize] == u64::MAX {
                    distances[to as usize] = distances[node as usize] + 1;
                    found.push(to);
                }
            }
        }
        for node in 0..self.len() {
            for (to, weight) in &mut self.edges[self.starts[node] as usize..self.starts[node + 1] as usize] {
                let hops = distances[node].min(distances[*to as usize]);
                *weight += *weight / hops.saturating_add(1);
            }
        }
    }

    /// The graph in which each of the `count` groups of nodes is one node.
    pub(super) fn contracted(&self, groups: &[u32], count: usize) -> Graph {
        let mut firsts = vec![0; count + 1];
        groups.iter().for_each(|&group| firsts[group as usize + 1] += 1);
        accumulate(&mut firsts);
        let mut next = firsts.clone();
        let mut members = vec![0; groups.len()];
        for (node, &group) in (0_u32..).zip(groups) {
            members[next[group as usize] as usize] = node;
            next[group as usize] += 1;
        }

        let mut weights = vec![0; count];
        let mut starts = Vec::with_capacity(count + 1);
        let mut edges: Vec<(u32, u64)> = Vec::with_capacity(self.edges.len());
        starts.push(0);
        // The place of the edge to each group; it is of the current group if it is not before the group's first edge.
        let mut places = vec![u32::MAX; count];
        for group in 0..count {
            let first = edges.len();
            for &node in &members[firsts[group] as usize..firsts[group + 1] as usize] {
                weights[group] += self.weights[node as usize];
                for &(other, weight) in self.edges(node as usize) {
                    let to = groups[other as usize];
                    let place = places[to as usize] as usize;
                    if to as usize == group {
                        continue;
                    } else if (first..edges.len()).contains(&place) {
                        edges[place].1 += weight;
                    } else {
                        places[to as usize] = edges.len() as u32;
                        edges.push((to, weight));
                    }
                }
            }
            starts.push(edges.len() as u32);
        }
        Graph { weights, starts, edges }
    }

    /// The graph of some of the nodes, with the edges among them.
    pub(super) fn induced(&self, nodes: &[u32]) -> Graph {
        let mut numbers = vec![u32::MAX; self.len()];
        (0..).zip(nodes).for_each(|(number, &node)| numbers[node as usize] = number);
        let mut starts = vec![0];
        let mut edges = Vec::new();
        for &node in nodes {
            let inside = self.edges(node as usize).iter().map(|&(to, weight)| (numbers[to as usize], weight));
            edges.extend(inside.filter(|&(to, _)| to != u32::MAX));
            starts.push(edges.len() as u32);
        }
        Graph { weights: nodes.iter().map(|&node| self.weights[node as usize]).collect(), starts, edges }
    }
}

/// Replaces each number by the sum of all up to it.
fn accumulate(numbers: &mut [u32]) {
    let mut sum = 0;
    for number in numbers {
        sum += *number;
        *number = sum;
    }
}
