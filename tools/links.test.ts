/** Every relative link of every page leads to a file that exists, and its anchor to a heading. */
import assert from 'node:assert/strict'
import { existsSync, statSync } from 'node:fs'
import { dirname, join, relative } from 'node:path'
import { test } from 'node:test'
import { anchorsOf, linksOf } from './markdown.ts'
import { pages, pageText, root } from './pages.ts'

test('links: all lead to files and headings that exist', () => {
  const broken = pages.flatMap((page) =>
    linksOf(pageText(page)).flatMap(({ line, target }) => {
      const fault = faultOf(page, target)
      return fault === undefined ? [] : [`${page}:${line}: ${target}: ${fault}`]
    }),
  )
  assert.deepEqual(broken, [])
})

test('links: every page of docs/ can be found from docs/README.md', () => {
  const reached = new Set<string>()
  const left = ['docs/README.md']
  for (let page = left.pop(); page !== undefined; page = left.pop()) {
    if (reached.has(page)) continue
    reached.add(page)
    left.push(...pagesLinkedFrom(page))
  }
  const lost = pages.filter((page) => page.startsWith('docs/') && !reached.has(page))
  assert.deepEqual(lost, [])
})

test('anchors: GitHub and this test make the same ones', () => {
  const page = '# A `b`, c\n```\n# no\n```\n## [Link](x.md) – und_so\n## A b, c\n'
  assert.deepEqual(anchorsOf(page), ['a-b-c', 'link--und_so', 'a-b-c-1'])
})

function faultOf(page: string, target: string): string | undefined {
  const [path = '', anchor] = target.split('#')
  const file = path === '' ? page : relative(root, join(root, dirname(page), path))
  if (!existsSync(join(root, file))) return 'there is no such file'
  if (anchor === undefined || !file.endsWith('.md')) return undefined
  return anchorsOf(pageText(file)).includes(anchor) ? undefined : 'there is no such heading'
}

function pagesLinkedFrom(page: string): readonly string[] {
  return linksOf(pageText(page))
    .map(({ target }) => join(dirname(page), target.replace(/#.*$/, '')))
    .flatMap((path) => (isFolder(path) ? pages.filter((each) => dirname(each) === path) : [path]))
    .filter((path) => pages.includes(path))
}

function isFolder(path: string): boolean {
  return existsSync(join(root, path)) && statSync(join(root, path)).isDirectory()
}
