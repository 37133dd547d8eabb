const UNITS = new Map([
  ['', 1],
  ['k', 1000],
  ['M', 1000 ** 2],
  ['G', 1000 ** 3],
  ['Ki', 1024],
  ['Mi', 1024 ** 2],
  ['Gi', 1024 ** 3],
])

/** Parses a whole number with or without a unit, as in Kubernetes; undefined for anything else. */
export function parseQuantity(text: string): number | undefined {
  const [, digits, unit = ''] = /^(\d{1,15})([A-Za-z]{0,2})$/.exec(text) ?? []
  const factor = UNITS.get(unit)
  return digits === undefined || factor === undefined ? undefined : Number(digits) * factor
}

/** Uses the largest binary unit that divides the value. */
export function formatQuantity(value: number): string {
  for (const unit of ['Gi', 'Mi', 'Ki']) {
    const factor = UNITS.get(unit) ?? 1
    if (value > 0 && value % factor === 0) return `${value / factor}${unit}`
  }
  return String(value)
}
