/**
 * Makes all files of a release from the commit that is checked out: `npm run release:artefacts`.
 * The same commit gives the same files, here and in the release workflow.
 */
import { execFileSync } from 'node:child_process'
import { existsSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { writeSums } from './archive.ts'
import { entriesOf } from './changelog.ts'
import { changesOfTree, commitHash, packageJson, releaseFolder, root } from './project.ts'

const HELM = join(root, '.cache/helm/helm')
const { version } = packageJson()

const changes = changesOfTree()
if (changes !== '') throw new Error(`the files of a release are those of a commit:\n${changes}`)
// Whatever was done to the last build is not in this one.
for (const folder of [join(root, 'dist'), releaseFolder]) {
  rmSync(folder, { recursive: true, force: true })
}
mkdirSync(releaseFolder, { recursive: true })
run('npm', 'run', '--silent', 'dist', '--', '--arch=arm64')
// Makes the archive for x64 first.
run('npm', 'run', '--silent', 'image')
run('node', '--test', 'test/nightly/release/image.test.ts')
if (!existsSync(HELM)) run('npm', 'run', '--silent', 'tools', '--', 'helm')
run('npm', 'run', '--silent', 'chart')
const notes = join(releaseFolder, `tidings-${version}-notes.md`)
writeFileSync(notes, notesOf(readFileSync(join(root, 'CHANGELOG.md'), 'utf8')))
writeSums(releaseFolder)

function notesOf(changelog: string): string {
  return `# tidings ${version}

Commit ${commitHash()}. Check the files with \`sha256sum --check SHA256SUMS\`.

| file                                  | tested with a build of its commit                          |
| ------------------------------------- | ---------------------------------------------------------- |
| \`tidings-${version}-linux-x64.tar.gz\`   | unpacked, started and stopped on Debian 13                 |
| \`tidings-${version}-linux-x64.oci.tar\`  | started from its root filesystem, read-only, without root  |
| \`tidings-${version}.tgz\`                | rendered with many values, and checked                     |
| \`tidings-${version}-linux-arm64.tar.gz\` | **untested: linux-arm64** is built, and has never been run |

To upgrade, read docs/how-to/upgrade.md in the archive's repository; what is stable is in docs/explanation/versions.md.

${entriesOf(changelog, version)}
`
}

function run(program: string, ...args: readonly string[]): void {
  execFileSync(program, args, { cwd: root, stdio: 'inherit' })
}
