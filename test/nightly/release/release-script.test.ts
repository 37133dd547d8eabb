/** The release script in a clone of this repository, with real git; only the long steps are short. */
import assert from 'node:assert/strict'
import { execFileSync, spawnSync } from 'node:child_process'
import { mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, test } from 'node:test'
import { entriesOf, unreleasedEntries } from '../../../tools/release/changelog.ts'
import { commitHash, root } from '../../../tools/release/project.ts'

const SCRIPT = join(root, 'tools/release/release.ts')
const TODAY = new Date().toISOString().slice(0, 10)
const { version: VERSION } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8'))

const skip = commitHash() === '' && 'sources without a repository cannot be cloned'

describe('release', { skip }, () => {
  let clone: string
  const git = (...args: readonly string[]): string =>
    execFileSync('git', args, { cwd: clone, encoding: 'utf8' }).trim()
  const read = (file: string): string => readFileSync(join(clone, file), 'utf8')
  const state = (): readonly string[] => [
    git('rev-parse', 'HEAD'),
    git('tag', '--list'),
    git('status', '--porcelain'),
  ]
  const release = (...args: readonly string[]) => {
    const options = { cwd: clone, encoding: 'utf8' } as const
    const { status, stdout, stderr } = spawnSync(process.execPath, [SCRIPT, ...args], options)
    return { status, stdout, stderr }
  }
  const commitFile = (file: string, content: string): void => {
    writeFileSync(join(clone, file), content)
    git('add', file)
    git('commit', '--quiet', '--message', `Change ${file}`)
  }
  /** Replaces the steps that take minutes; a script is a shell command. */
  const setScripts = (scripts: Readonly<Record<string, string>>): void => {
    const manifest = JSON.parse(read('package.json'))
    const changed = { ...manifest, scripts: { ...manifest.scripts, ...scripts } }
    commitFile('package.json', `${JSON.stringify(changed, undefined, 2)}\n`)
  }

  beforeEach(() => {
    clone = mkdtempSync(join(tmpdir(), 'tidings-release-test-'))
    // Only the files that a release changes are checked out.
    execFileSync('git', ['clone', '--quiet', '--shared', '--no-tags', '--sparse', root, clone])
    git('sparse-checkout', 'set', 'charts/tidings', 'docs/images', 'test/releases', 'tools/release')
    git('checkout', '--quiet', '-B', 'main')
    git('config', 'user.name', 'Ada')
    git('config', 'user.email', 'ada@example.org')
    // Only what the repository itself ignores is ignored.
    git('config', 'core.excludesFile', '/dev/null')
    symlinkSync(join(root, 'node_modules'), join(clone, 'node_modules'))
    setScripts({
      docs: 'true',
      screenshot: 'mkdir -p docs/images && date > docs/images/page-light.png',
      'release:record':
        'mkdir -p test/releases/$npm_package_version && cp package.json test/releases/$npm_package_version/data',
      'release:artefacts': 'mkdir -p release && git describe > release/built',
    })
    commitFile('CHANGELOG.md', '# Changelog\n\n## Unreleased\n\n- Something new.\n')
  })
  afterEach(() => rmSync(clone, { recursive: true, force: true }))

  test('makes one commit with the version everywhere, a tag and the artefacts', () => {
    const { status, stderr, stdout } = release(VERSION, '--ci', 'touch /dev/null')
    assert.equal(status, 0, stderr)
    assert.equal(git('log', '-1', '--format=%s'), `Release ${VERSION}`)
    assert.equal(git('cat-file', '-t', `v${VERSION}`), 'tag')
    assert.equal(git('rev-parse', `v${VERSION}^{commit}`), git('rev-parse', 'HEAD'))
    const lock = JSON.parse(read('package-lock.json'))
    const chart = [
      ...read('charts/tidings/Chart.yaml').matchAll(/^(?:version|appVersion): (.*)$/gm),
    ]
    assert.deepEqual(
      [JSON.parse(read('package.json')).version, lock.version, lock.packages[''].version],
      [VERSION, VERSION, VERSION],
    )
    assert.deepEqual(
      chart.map(([, found]) => found),
      [VERSION, VERSION],
    )
    const changelog = read('CHANGELOG.md')
    assert.equal(entriesOf(changelog, VERSION), '- Something new.')
    assert.equal(unreleasedEntries(changelog), '')
    assert.match(changelog, new RegExp(`^## ${VERSION} \\(${TODAY}\\)$`, 'm'))
    assert.equal(JSON.parse(read('test/releases/previous.json')).commit, git('rev-parse', 'HEAD~'))
    assert.ok(git('ls-files', 'test/releases').includes(`test/releases/${VERSION}/data`))
    assert.ok(git('show', '--stat=200', 'HEAD').includes('docs/images/page-light.png'))
    assert.equal(read('release/built').trim(), `v${VERSION}`)
    assert.match(stdout, new RegExp(`git push --atomic origin HEAD v${VERSION}`))
  })

  test('goes on after a failure: no second commit, and the same tag', () => {
    setScripts({ 'release:artefacts': 'test -e .git/fixed && mkdir -p release' })
    const first = release(VERSION, '--ci', 'true')
    assert.equal(first.status, 1)
    assert.match(first.stderr, /artefacts failed/)
    const [head, tags] = state()
    writeFileSync(join(clone, '.git/fixed'), '')
    const second = release(VERSION, '--ci', 'false')
    assert.equal(second.status, 0, second.stderr)
    assert.deepEqual(state().slice(0, 2), [head, tags])
  })

  test('a failed step before the commit leaves no changes', () => {
    setScripts({ 'release:record': 'echo x > test/releases/half-made; exit 3' })
    const before = state()
    const { status, stderr } = release(VERSION, '--ci', 'true')
    assert.equal(status, 1)
    assert.match(stderr, /data of this version failed/)
    assert.deepEqual(state(), before)
  })

  test('refuses, with all reasons at once, and changes nothing', () => {
    commitFile('CHANGELOG.md', '# Changelog\n\n## Unreleased\n\nNothing yet.\n')
    git('checkout', '--quiet', '-B', 'feature')
    writeFileSync(join(clone, 'stray'), '')
    const before = state()
    const { status, stderr } = release('7.3.1')
    assert.equal(status, 1)
    for (const reason of [
      /this is feature: releases are made on main or release-7\.3/,
      /changes that are not committed/,
      /7\.3\.1 is not the next version/,
      /CHANGELOG\.md has no entries/,
      /--ci is missing/,
    ]) {
      assert.match(stderr, reason)
    }
    assert.deepEqual(state(), before)
  })

  test('CI that fails stops it before anything is changed', () => {
    const before = state()
    const { status, stderr } = release(VERSION, '--ci', 'exit 4')
    assert.equal(status, 1)
    assert.match(stderr, /CI failed: exit 4/)
    assert.deepEqual(state(), before)
  })

  test('what appears during CI is neither committed nor deleted', () => {
    const [head] = state()
    const edited = release(VERSION, '--ci', 'echo mine > stray')
    assert.equal(edited.status, 1)
    assert.match(edited.stderr, /changes that are not committed/)
    assert.equal(read('stray'), 'mine\n')
    assert.equal(git('rev-parse', 'HEAD'), head)
    rmSync(join(clone, 'stray'))
    const committed = release(VERSION, '--ci', 'git commit --quiet --allow-empty -m Later')
    assert.equal(committed.status, 1)
    assert.match(committed.stderr, /not the commit that CI has checked/)
  })

  test('what appears during the release is neither committed nor deleted', () => {
    setScripts({ 'release:record': 'echo mine > stray; mkdir test/releases/new' })
    const [head] = state()
    const { status, stderr } = release(VERSION, '--ci', 'true')
    assert.equal(status, 1)
    assert.match(stderr, /not of this release:\n\?\? stray/)
    assert.equal(read('stray'), 'mine\n')
    assert.deepEqual(state(), [head, '', '?? stray'])
  })

  test('a pre-release leaves the entries to its release', () => {
    git('tag', '--annotate', '--message', 'x', 'v0.9.0')
    const first = release('0.10.0-rc.1', '--ci', 'true')
    assert.equal(first.status, 0, first.stderr)
    assert.equal(entriesOf(read('CHANGELOG.md'), '0.10.0-rc.1'), '- Something new.')
    const second = release('0.10.0', '--ci', 'true')
    assert.equal(second.status, 0, second.stderr)
    assert.equal(entriesOf(read('CHANGELOG.md'), '0.10.0'), '- Something new.')
  })

  test('a dry run does all of it in a clone, and changes nothing', () => {
    const before = state()
    const { status, stdout, stderr } = release(VERSION, '--dry-run')
    assert.equal(status, 0, stderr)
    assert.match(stdout, new RegExp(`v${VERSION} is ready in release/`))
    assert.match(stdout, /built/)
    assert.deepEqual(state(), before)
  })

  test('after a tag, the next version is one step from it', () => {
    git('tag', '--annotate', '--message', 'x', 'v0.9.0')
    const before = state()
    assert.match(
      release('0.9.0', '--ci', 'true').stderr,
      /next version: 0\.9\.1, 0\.10\.0, 1\.0\.0/,
    )
    assert.match(release('0.12.0', '--ci', 'true').stderr, /is not the next version/)
    assert.deepEqual(state(), before)
    assert.equal(release('0.10.0', '--ci', 'true').status, 0)
    assert.equal(release('0.10.1', '--ci', 'true').status, 1, 'there are no entries')
  })
})
