/** Reads and changes CHANGELOG.md: sections of versions, newest first, below "Unreleased". */
import { parseVersion } from './semver.ts'

const UNRELEASED = 'Unreleased'
/** What an empty "Unreleased" says. */
const NOTHING = 'Nothing yet.'

interface Section {
  readonly title: string
  /** Where the heading begins and the section ends. */
  readonly start: number
  readonly end: number
  /** The section without its heading. */
  readonly body: string
}

/** The entries of the next version; empty when there are none. */
export function unreleasedEntries(text: string): string {
  const { body } = find(text, UNRELEASED)
  return body === NOTHING ? '' : body
}

/** The section of a version, for its release notes; that of a pre-release is "Unreleased". */
export function entriesOf(text: string, version: string): string {
  return find(text, isPreRelease(version) ? UNRELEASED : version).body
}

/**
 * Turns "Unreleased" into the section of a version, below a new, empty "Unreleased". A pre-release
 * leaves everything to the release that follows it.
 */
export function withRelease(text: string, version: string, date: string): string {
  if (unreleasedEntries(text) === '') throw new Error('CHANGELOG.md has no entries to release')
  if (isPreRelease(version)) return text
  if (sectionsOf(text).some(({ title }) => isOf(title, version))) {
    throw new Error(`CHANGELOG.md has a section of ${version} already`)
  }
  const { start, end, body } = find(text, UNRELEASED)
  const rest = text.slice(end)
  const sections = [`## ${UNRELEASED}`, NOTHING, `## ${version} (${date})`, body]
  return `${text.slice(0, start)}${sections.join('\n\n')}\n${rest === '' ? '' : '\n'}${rest}`
}

function isPreRelease(version: string): boolean {
  return parseVersion(version)?.preRelease !== undefined
}

function find(text: string, wanted: string): Section {
  const found = sectionsOf(text).find(({ title }) => isOf(title, wanted))
  if (found === undefined) throw new Error(`CHANGELOG.md has no section of ${wanted}`)
  return found
}

function isOf(title: string, wanted: string): boolean {
  return title === wanted || title.startsWith(`${wanted} (`)
}

function sectionsOf(text: string): readonly Section[] {
  const headings = [...text.matchAll(/^## (.+)$/gm)]
  return headings.map((heading, index) => {
    const end = headings[index + 1]?.index ?? text.length
    const body = text.slice(heading.index + heading[0].length, end).trim()
    return { title: heading[1] ?? '', start: heading.index, end, body }
  })
}
