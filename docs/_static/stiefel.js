/* The penalty function h for n = 2, p = 1 and f(x) = x'Ax / 2: its contours, its stationary points, and a run of CDFSG.
   The formulas are those of cdfsg/penalty.py and cdfsg/solvers/cdfsg.py, for one column; a test compares the numbers. */
"use strict";

const stiefel = (() => {
  const A = [[1, 0], [0, 1.6]];
  const M = [[1, 0.3], [0.3, 0.8]];
  const STEPS = 300;

  const times = (S, x) => [S[0][0] * x[0] + S[0][1] * x[1], S[1][0] * x[0] + S[1][1] * x[1]];
  const dot = (x, y) => x[0] * y[0] + x[1] * y[1];
  const scaled = (s, x) => [s * x[0], s * x[1]];

  // Eigenvalues and eigenvectors, of unit length in M, of the pencil (A, M), the least first.
  function pencil() {
    const det = (S) => S[0][0] * S[1][1] - S[0][1] * S[1][0];
    const half = (A[0][0] * M[1][1] + A[1][1] * M[0][0] - 2 * A[0][1] * M[0][1]) / 2 / det(M);
    const root = Math.sqrt(half ** 2 - det(A) / det(M));
    return [half - root, half + root].map((value) => {
      const v = [A[0][1] - value * M[0][1], value * M[0][0] - A[0][0]];
      return { value, vector: scaled(1 / Math.sqrt(dot(v, times(M, v))), v) };
    });
  }
  const PENCIL = pencil();
  const SHARP = (9 / 4) * PENCIL[1].value; // below it zero is no maximum, and spurious points appear

  // h(x) = f(A(x)) + beta/6 c (c^2 - 3), c = x'Mx (CDFCP).
  function h(x, beta) {
    const c = dot(x, times(M, x)), q = (3 - c) / 2;
    return (q * q * dot(x, times(A, x))) / 2 + (beta / 6) * (c ** 3 - 3 * c);
  }

  // W(x, Y) = G Q(Y) + M_theta x T (eq:updated).
  function direction(x, Y, Mtheta, beta) {
    const Q = (3 - Y) / 2, G = scaled(Q, times(A, x));
    const T = beta * (Y * Y - 1) - dot(x, G), Mx = times(Mtheta, x);
    return [G[0] * Q + Mx[0] * T, G[1] * Q + Mx[1] * T];
  }
  const gradient = (x, beta) => direction(x, dot(x, times(M, x)), M, beta); // (eq:gradh)

  // The least curvature of h at x, by differences of the gradient.
  function leastCurvature(x, beta) {
    const e = 1e-5;
    const along = (d) => {
      const [up, down] = [1, -1].map((s) => gradient([x[0] + s * e * d[0], x[1] + s * e * d[1]], beta));
      return [(up[0] - down[0]) / (2 * e), (up[1] - down[1]) / (2 * e)];
    };
    const [[a, b], [, d]] = [along([1, 0]), along([0, 1])];
    return (a + d) / 2 - Math.sqrt(((a - d) / 2) ** 2 + b * b);
  }

  // All stationary points: along the eigenvectors of the pencil, of squared length 0, 1, or the third one.
  function points(beta) {
    const found = [{ x: [0, 0], feasible: false }];
    for (const { value, vector } of PENCIL) {
      const third = ((9 / 4) * value - beta) / (beta + (3 / 4) * value);
      for (const sign of [1, -1]) {
        found.push({ x: scaled(sign, vector), feasible: true });
        if (third > 0) found.push({ x: scaled(sign * Math.sqrt(third), vector), feasible: false });
      }
    }
    return found.map((point) => {
      const kind = leastCurvature(point.x, beta) > 0 ? "minimiser" : "saddle";
      return { ...point, kind: `${point.feasible ? "feasible" : "infeasible"} ${kind}` };
    });
  }

  // M_theta = L (I + noise E) L' with M = LL' and E a reflection of random axis: semidefinite for noise <= 1, mean M.
  const L = [[1, 0], [M[0][1], Math.sqrt(M[1][1] - M[0][1] ** 2)]];
  function sample(angle, noise) {
    const c = noise * Math.cos(angle), s = noise * Math.sin(angle);
    const [r0, r1] = L.map((row) => [row[0] * (1 + c) + row[1] * s, row[0] * s + row[1] * (1 - c)]);
    return [[dot(r0, L[0]), dot(r0, L[1])], [dot(r1, L[0]), dot(r1, L[1])]];
  }

  // CDFSG (Algorithm 1) from x; the first angle gives theta_0.
  function path({ x, beta, alpha, b, noise }, angles) {
    const value = (S, y) => dot(y, times(S, y));
    let Y = value(sample(angles[0], noise), x), D = [0, 0];
    const xs = [x];
    for (const angle of angles.slice(1)) {
      const Mtheta = sample(angle, noise), old = value(Mtheta, x);
      x = [x[0] - alpha * D[0], x[1] - alpha * D[1]];
      const now = value(Mtheta, x);
      if (!(now < 100)) return { xs, Y, diverged: xs.length };
      Y = Y - b * (Y - old) + (now - old);
      D = direction(x, Y, Mtheta, beta);
      xs.push(x);
    }
    return { xs, Y, diverged: 0 };
  }

  // Angles from a small generator (mulberry32), so that a seed gives the same run everywhere.
  function angles(seed, count = STEPS + 1) {
    return Array.from({ length: count }, () => {
      seed = (seed + 0x6d2b79f5) | 0;
      let t = Math.imul(seed ^ (seed >>> 15), 1 | seed);
      t = (t + Math.imul(t ^ (t >>> 7), 61 | t)) ^ t;
      return (((t ^ (t >>> 14)) >>> 0) / 4294967296) * 2 * Math.PI;
    });
  }

  // Segments of the level sets of h / beta on a grid, as the data of an SVG path (marching squares).
  function contours(beta, place) {
    const N = 64, at = (k) => -2 + (4 * k) / N;
    const H = Array.from({ length: N + 1 }, (_, i) => Array.from({ length: N + 1 }, (_, j) => h([at(i), at(j)], beta) / beta));
    const least = Math.min(...H.map((row) => Math.min(...row)));
    let data = "";
    for (let level = 0; level < 16; level++) {
      const z = least + 0.01 * 300 ** (level / 15);
      for (let i = 0; i < N; i++) {
        for (let j = 0; j < N; j++) {
          const corners = [[i, j], [i + 1, j], [i + 1, j + 1], [i, j + 1]];
          const ends = [];
          corners.forEach(([a, b], k) => {
            const [c, d] = corners[(k + 1) % 4], from = H[a][b] - z, to = H[c][d] - z;
            if (from < 0 !== to < 0) {
              const t = from / (from - to);
              ends.push(place([at(a + t * (c - a)), at(b + t * (d - b))]).map((v) => v.toFixed(1)).join(" "));
            }
          });
          for (let k = 0; k + 1 < ends.length; k += 2) data += `M${ends[k]}L${ends[k + 1]}`;
        }
      }
    }
    return data;
  }

  const DISC = "M-6 0a6 6 0 1 0 12 0a6 6 0 1 0-12 0";
  const SHAPES = {
    "feasible minimiser": DISC,
    "feasible saddle": "M-5-5H5V5H-5z",
    "infeasible saddle": "M-6-6L6 6M-6 6L6-6",
    "infeasible minimiser": "M0-9L2.6-3L9-2.6L4.2 1.6L5.6 8L0 4.6L-5.6 8L-4.2 1.6L-9-2.6L-2.6-3z",
  };
  const SLIDERS = [
    ["beta", "β / sharp β", 0.05, 2, 0.05, 1],
    ["alpha", "step α of x", 0.01, 0.5, 0.01, 0.05],
    ["b", "step b of the tracker", 0.05, 3, 0.05, 0.5],
    ["noise", "noise of M_θ", 0, 1, 0.05, 0.4],
  ];

  function show(box) {
    const place = ([x, y]) => [200 + 98 * x, 200 - 98 * y];
    const state = { x: [-0.3, -0.2], seed: 1 };
    box.innerHTML = `<svg viewBox="0 0 400 400" tabindex="0" role="img"><path class="levels"/><path class="feasible"/>
      <path class="run"/><g class="points"></g><circle class="start-of-the-run" r="6"/><circle class="end-of-the-run" r="5"/></svg>
      <div class="controls"><form></form><button type="button">New random samples</button><ul></ul>
      <p role="status"></p></div>`;
    const $ = (selector) => box.querySelector(selector);
    for (const [name, words, min, max, step, value] of SLIDERS) {
      state[name] = value;
      const label = document.createElement("label");
      label.innerHTML = `<span>${words}: <output>${value}</output></span>
        <input type="range" name="${name}" min="${min}" max="${max}" step="${step}" value="${value}">`;
      $("form").append(label);
      label.querySelector("input").addEventListener("input", (event) => {
        state[name] = Number(event.target.value);
        label.querySelector("output").value = state[name];
        draw(name === "beta");
      });
    }
    $("ul").innerHTML = Object.entries({ ...SHAPES, "start of the run": DISC, "end of the run": DISC }).map(([kind, shape]) =>
      `<li><svg viewBox="-10 -10 20 20" aria-hidden="true"><path class="${kind.replace(/ /g, "-")}" d="${shape}"/></svg>${kind}</li>`).join("");
    const ellipse = Array.from({ length: 121 }, (_, k) => {
      const u = [Math.cos((k * Math.PI) / 60), Math.sin((k * Math.PI) / 60)];
      return place(scaled(1 / Math.sqrt(dot(u, times(M, u))), u)).join(" ");
    });
    $(".feasible").setAttribute("d", `M${ellipse.join("L")}z`);

    function draw(all) {
      const beta = state.beta * SHARP, found = points(beta);
      if (all) {
        $(".levels").setAttribute("d", contours(beta, place));
        $(".points").innerHTML = found.map(({ x, kind }) =>
          `<path class="${kind.replace(" ", "-")}" transform="translate(${place(x)})" d="${SHAPES[kind]}"/>`).join("");
      }
      const { xs, Y, diverged } = path({ ...state, beta }, angles(state.seed)), end = xs[xs.length - 1];
      $(".run").setAttribute("d", `M${xs.map((x) => place(x).map((v) => v.toFixed(1)).join(" ")).join("L")}`);
      for (const [name, x] of [[".start-of-the-run", state.x], [".end-of-the-run", end]]) {
        const [cx, cy] = place(x);
        $(name).setAttribute("cx", cx);
        $(name).setAttribute("cy", cy);
      }
      const near = found.map((point) => ({ ...point, far: Math.hypot(point.x[0] - end[0], point.x[1] - end[1]) }))
        .sort((p, q) => p.far - q.far)[0];
      $("[role=status]").textContent = diverged
        ? `The run diverges at step ${diverged}.`
        : `After ${STEPS} steps: x'Mx = ${dot(end, times(M, end)).toFixed(3)}, Y = ${Y.toFixed(3)}, at a distance of ${near.far.toFixed(2)} from the nearest ${near.kind}.`;
      const kinds = [...new Set(found.map(({ kind }) => kind))].map((kind) => `${found.filter((p) => p.kind === kind).length} of the kind ${kind}`);
      $("svg").setAttribute("aria-label", `Contours of the penalty function with the feasible ellipse and its stationary points (${kinds.join(", ")}), and a run of CDFSG. ${$("[role=status]").textContent}`);
    }
    function start(x) {
      state.x = x.map((v) => Math.min(2, Math.max(-2, v)));
      draw(false);
    }
    $("svg").addEventListener("pointerdown", (event) => {
      const frame = $("svg").getBoundingClientRect();
      start([(((event.clientX - frame.left) / frame.width) * 400 - 200) / 98, (200 - ((event.clientY - frame.top) / frame.height) * 400) / 98]);
    });
    $("svg").addEventListener("keydown", (event) => {
      const move = { ArrowLeft: [-0.1, 0], ArrowRight: [0.1, 0], ArrowUp: [0, 0.1], ArrowDown: [0, -0.1] }[event.key];
      if (move) {
        event.preventDefault();
        start([state.x[0] + move[0], state.x[1] + move[1]]);
      }
    });
    $("button").addEventListener("click", () => {
      state.seed += 1;
      draw(false);
    });
    draw(true);
  }
  document.querySelectorAll(".living").forEach(show);
  return { A, M, SHARP, h, gradient, points, path, angles };
})();
