// The scale of the model's predictions: stars within a range, or the probability of an event.

/** Return the ratings to choose from, at most ten. */
function choices([low, high]) {
  const first = Math.max(Math.ceil(low), 1);
  const whole = Math.floor(high) - first + 1;
  if (whole >= 2 && whole <= 10) return Array.from({ length: whole }, (_, k) => first + k);
  return Array.from({ length: 5 }, (_, k) => low + ((high - low) * k) / 4);
}

const digits = (number, count) => number.toFixed(count).replace("-", "−");
const signed = (number, count) => (number < 0 ? "" : "+") + digits(number, count);

export function scaleOf(about) {
  const events = about.kind === "EventModel";
  const [low, high] = events ? [0, 1] : about.range;
  const step = Math.max(1, Math.ceil((high - low) / 10));
  const stars = Array.from({ length: Math.floor((high - low) / step) + 1 }, (_, k) => low + k * step);
  return {
    events,
    given: events ? "taken" : "rated",
    choices: events ? [1] : choices(about.range),
    ticks: events ? [0, 0.25, 0.5, 0.75, 1] : stars,
    /** Position of a value on the scale, from 0 to 1. */
    place: (value) => Math.min(1, Math.max(0, (value - low) / (high - low))),
    tick: (value) => (events ? `${100 * value}%` : `${value} ★`),
    show: (value) => (events ? `${digits(100 * value, 0)}%` : digits(value, 2)),
    say: (value) => (events ? `${digits(100 * value, 0)} percent` : `${digits(value, 1)} stars`),
    /** Contribution of one rating; for events, to the logit. */
    part: (value) => signed(value, 2),
    change: (value) => (events ? `${signed(100 * value, 0)} points` : signed(value, 2)),
    spread: (value) => (events ? `±${digits(100 * value, 0)} points` : `±${digits(value, 2)} stars`),
    /** The part of an interval that shrinks with more ratings: 90% of q of the mean. */
    unsure: ({ mean, std, low: from, high: to }) =>
      events ? [from, to] : [mean - 1.645 * std, mean + 1.645 * std],
    legend: events
      ? "The dot is the probability that you take it, once you consider it; the bar holds it with a probability of 90%."
      : "The dot is the rating to expect. The bar is how far that is unsure, and shrinks as you rate; nine of ten ratings fall on the line.",
  };
}
