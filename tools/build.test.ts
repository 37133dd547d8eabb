/** The build script in a small project of its own, with real git and the real compiler. */
import assert from 'node:assert/strict'
import { execFileSync, spawnSync } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import {
  cpSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, test } from 'node:test'

const root = join(import.meta.dirname, '..')
const project = mkdtempSync(join(tmpdir(), 'tidings-build-test-'))
after(() => rmSync(project, { recursive: true, force: true }))

test('build: the same inputs keep it, others replace it, and a failure leaves it', () => {
  makeProject()
  assert.equal(build(), 0)
  const first = inode()
  assert.equal(record()['gitTreeState'], 'clean')

  write('README.md', 'changed')
  assert.equal(build(), 0)
  assert.equal(inode(), first, 'a page is no input')

  write('src/main.ts', 'export const broken: number = "text"\n')
  assert.notEqual(build(), 0)
  assert.equal(inode(), first, 'a failure leaves the last build')

  write('src/main.ts', 'export const answer: number = 2\n')
  assert.equal(build(), 0)
  assert.notEqual(inode(), first)
  assert.match(readFileSync(join(project, 'dist/main.js'), 'utf8'), /answer = 2/)
  assert.equal(record()['gitTreeState'], 'dirty')

  const second = inode()
  write('ui/src/main.tsx', 'import "./main.css"\ndocument.title = "two"\n')
  assert.equal(build(), 0)
  assert.notEqual(inode(), second)
  const page = readFileSync(join(project, 'dist/ui/index.html'), 'utf8')
  const script = /src="(assets\/main-\w+\.js)"/.exec(page)?.[1] ?? page
  assert.match(readFileSync(join(project, 'dist/ui', script), 'utf8'), /"two"/)
  const left = readdirSync(project).filter((name) => name.startsWith('dist'))
  assert.deepEqual(left, ['dist'], 'nothing is left beside it')
})

test('build: the page names the packages that are in it, and is limited in size', () => {
  const main =
    'import "./main.css"\nimport { h } from "preact"\ndocument.title = h("a", null).type\n'
  write('ui/src/main.tsx', main)
  assert.equal(build(), 0)
  const packages = readFileSync(join(project, 'dist/ui/packages.json'), 'utf8')
  assert.deepEqual(JSON.parse(packages), ['node_modules/preact'])

  // As base64, 80 KiB of random bytes are 80 KiB gzipped.
  const last = inode()
  const text = randomBytes(80 * 1024).toString('base64')
  write('ui/src/main.tsx', `${main}document.body.textContent = "${text}"\n`)
  assert.notEqual(build(), 0)
  assert.equal(inode(), last, 'a page that is too large leaves the last build')
  write('ui/src/main.tsx', main)
})

test('build: what is committed afterwards gets its commit, and no state of before', () => {
  commit('Change the answer')
  assert.equal(build(), 0)
  assert.equal(record()['gitCommit'], git('rev-parse', 'HEAD'))
  assert.equal(record()['gitTreeState'], 'clean')
})

function makeProject(): void {
  mkdirSync(join(project, 'tools'))
  for (const file of ['build.ts', 'build-page.ts']) {
    cpSync(join(root, 'tools', file), join(project, 'tools', file))
  }
  cpSync(join(root, '.gitignore'), join(project, '.gitignore'))
  symlinkSync(join(root, 'node_modules'), join(project, 'node_modules'))
  write('package.json', '{"type":"module"}')
  write('package-lock.json', '{}')
  const compilerOptions = { rootDir: 'src', outDir: 'dist', module: 'nodenext', target: 'esnext' }
  write('tsconfig.json', JSON.stringify({ compilerOptions: { ...compilerOptions, types: [] } }))
  write('tsconfig.build.json', '{"extends":"./tsconfig.json","include":["src"]}')
  write('src/main.ts', 'export const answer: number = 1\n')
  for (const file of ['page.html', 'icon.svg'])
    cpSync(join(root, 'ui', file), join(project, 'ui', file))
  write('ui/src/main.tsx', 'import "./main.css"\ndocument.title = "one"\n')
  write('ui/src/main.css', 'body { color: black }\n')
  git('init', '--quiet')
  git('config', 'user.name', 'Ada')
  git('config', 'user.email', 'ada@example.org')
  // Only what the repository itself ignores is ignored.
  git('config', 'core.excludesFile', '/dev/null')
  commit('Begin')
}

function commit(subject: string): void {
  git('add', '--all')
  git('commit', '--quiet', '--message', subject)
}

function build(): number | null {
  return spawnSync(process.execPath, ['tools/build.ts'], { cwd: project }).status
}

function inode(): number {
  return statSync(join(project, 'dist/main.js')).ino
}

function record(): Readonly<Record<string, string>> {
  return JSON.parse(readFileSync(join(project, 'dist/build.json'), 'utf8'))
}

function write(file: string, text: string): void {
  mkdirSync(join(project, file, '..'), { recursive: true })
  writeFileSync(join(project, file), text)
}

function git(...args: readonly string[]): string {
  return execFileSync('git', args, { cwd: project, encoding: 'utf8' }).trim()
}
