// Examples: the fields that each sets. Data, factors, budget and seeds are kept.

const paper = { policy: "RobbinsMonro", kappa: "0.6" };

export const presets = [
  {
    title: "The paper: C = 1 with t^−0.6 diverges",
    fields: { algorithm: "children", option: "a", C: "1", rho1: "1", ...paper },
  },
  {
    title: "From ρ₁ = 1/512 it converges",
    fields: { algorithm: "children", option: "a", C: "1", rho1: "1/512", ...paper },
  },
  {
    title: "Algorithm 2 (b) from 1/64",
    fields: { algorithm: "batch", option: "b", size: "1000", rho1: "1/64", ...paper },
  },
  { title: "Full VB", fields: { algorithm: "full" } },
  { title: "Nothing to tune", fields: { algorithm: "default" } },
];
