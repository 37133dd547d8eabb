/** Builds a clone of the same commit in another folder: both archives and the image are identical. */
import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import { existsSync, mkdtempSync, rmSync, symlinkSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, test } from 'node:test'
import { sha256 } from '../../../tools/release/archive.ts'
import { releaseFolder, root } from '../../../tools/release/project.ts'
import { archiveName } from '../../../tools/release/staging.ts'

const clone = mkdtempSync(join(tmpdir(), 'tidings-clone-'))
after(() => rmSync(clone, { recursive: true }))
const isClean = git('status', '--porcelain') === ''
const skip = isClean ? false : 'the checkout has changes: a clone would not have them'

test('release: a clone of the commit gives the same archives and image', { skip }, () => {
  execFileSync('git', ['clone', '-q', root, clone])
  execFileSync('git', ['checkout', '-q', git('rev-parse', 'HEAD')], { cwd: clone })
  symlinkSync(join(root, 'node_modules'), join(clone, 'node_modules'))
  // Debian's packages may change between the two builds, and Node's need not be fetched again.
  symlinkSync(join(root, '.cache'), join(clone, '.cache'))
  build(root, ['tools/release/dist.ts', '--arch=arm64'])
  build(clone, ['tools/build.ts'])
  build(clone, ['tools/release/dist.ts'])
  build(clone, ['tools/release/dist.ts', '--arch=arm64'])
  build(clone, ['tools/release/image.ts', '--cached'])
  for (const file of [
    `${archiveName('x64')}.tar.gz`,
    `${archiveName('arm64')}.tar.gz`,
    `${archiveName('x64')}.oci.tar`,
  ]) {
    const [first, second] = [join(releaseFolder, file), join(clone, 'release', file)]
    assert.ok(existsSync(first), file)
    assert.equal(sha256(second), sha256(first), file)
  }
})

/** Builds with another time zone, language and umask than the first build. */
function build(folder: string, args: readonly string[]): void {
  const script = 'umask 027 && TZ=Asia/Tokyo LC_ALL=C.UTF-8 exec "$0" "$@"'
  execFileSync('sh', ['-c', script, process.execPath, ...args], { cwd: folder, stdio: 'inherit' })
}

function git(...args: readonly string[]): string {
  return execFileSync('git', args, { cwd: root, encoding: 'utf8' }).trim()
}
