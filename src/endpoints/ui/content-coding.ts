/** The content codings in which files are stored, the smallest first. */
const CODINGS = ['br', 'gzip'] as const

export type Coding = (typeof CODINGS)[number]

/** The maximum of clauses in a header. Browsers send four. */
const CLAUSES_MAX = 20

/**
 * Returns the codings that an Accept-Encoding header accepts, the most preferred first. A client
 * that accepts none of them gets the plain file.
 */
export function acceptedCodings(header: string | undefined): readonly Coding[] {
  if (header === undefined) return []
  const qualities = new Map<string, number>()
  for (const clause of header.split(',', CLAUSES_MAX)) {
    const [name = '', parameter] = clause.split(';', 2)
    qualities.set(name.trim().toLowerCase(), qualityOf(parameter))
  }
  const quality = (name: string): number => qualities.get(name) ?? qualities.get('*') ?? 0
  const least = qualities.get('identity') ?? 0
  return CODINGS.filter((coding) => quality(coding) > 0 && quality(coding) >= least).sort(
    (one, other) => quality(other) - quality(one),
  )
}

/** A quality that is not a number accepts nothing, since the plain file is always right. */
function qualityOf(parameter = 'q=1'): number {
  const quality = Number(/^\s*q\s*=\s*([\d.]+)\s*$/i.exec(parameter)?.[1])
  return Number.isNaN(quality) ? 0 : quality
}
