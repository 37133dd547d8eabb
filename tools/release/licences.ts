/** The folder `licenses/` of a release: a table of all packages, and the text of every licence. */
import { cpSync, existsSync, readdirSync, writeFileSync } from 'node:fs'
import { basename, join } from 'node:path'
import { pinnedNode } from './node-package.ts'
import type { RuntimePackage } from './runtime-packages.ts'

const LICENCE_TEXT = /^(licen[cs]e|copying|notice)/i

/** `from` has the `node_modules` with the packages; throws when a package has no licence text. */
export function copyLicences(
  packages: readonly RuntimePackage[],
  { from, to }: { from: string; to: string },
): void {
  for (const { name, version, path } of packages) {
    const texts = licenceTexts(name, join(from, path))
    if (texts.length === 0) throw new Error(`${name} ${version} has no licence text`)
    for (const text of texts) cpSync(text, join(to, `${name}-${version}`, basename(text)))
  }
}

export function writeLicenceTable(packages: readonly RuntimePackage[], folder: string): void {
  writeFileSync(join(folder, 'README.md'), licencePage(packages))
}

/** The files in the package or, for a package without one, those that we wrote from its sources. */
function licenceTexts(name: string, folder: string): readonly string[] {
  const ours = join(import.meta.dirname, 'files/licences', name)
  return [folder, ...(existsSync(ours) ? [ours] : [])].flatMap((place) =>
    readdirSync(place)
      .filter((file) => LICENCE_TEXT.test(file))
      .map((file) => join(place, file)),
  )
}

function licencePage(packages: readonly RuntimePackage[]): string {
  const rows = packages.map(({ name, version, licence, reason }) => {
    return `| ${name} | ${version} | ${licence} | ${reason} |`
  })
  return [
    '# Licences of what this release contains',
    '',
    'tidings itself has the licence in `../LICENSE`. The text of each licence is in the folder that is',
    'named after the package.',
    '',
    '| package | version | licence | why it is here |',
    '| --- | --- | --- | --- |',
    `| node | ${pinnedNode().version} | MIT and those of its parts | runs the program |`,
    ...rows,
    '',
  ].join('\n')
}
