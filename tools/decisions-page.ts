import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'

const folder = join(import.meta.dirname, '../docs/decisions')

/** The index of all decisions, by number, from the titles of their pages. */
export function decisionsPage(): string {
  const rows = readdirSync(folder)
    .filter((name) => /^\d{4}-.*\.md$/.test(name))
    .sort()
    .map((name) => {
      const [, number, title] =
        /^# (\d+)\. (.+)$/m.exec(readFileSync(join(folder, name), 'utf8')) ?? []
      if (title === undefined) throw new Error(`${name} does not begin with "# <number>. <title>"`)
      // Not a numbered list: numbers that others have reserved may be missing.
      return `- ${number}: [${title}](../decisions/${name})`
    })
  return [
    '# Decisions',
    '',
    '<!-- Made by tools/gen-docs.ts from the titles in docs/decisions; edit those, then run it. -->',
    '',
    'Each page has the context, the decision, and its trade-offs. A superseded decision stays, and names the one that',
    'replaced it.',
    '',
    ...rows,
    '',
  ].join('\n')
}
