// SPDX-License-Identifier: Apache-2.0
// Elements without a framework. Texts are text nodes: no markup is ever made from data.

export type Child = Node | string | number | null | undefined | false | Child[];

type Attributes = Record<string, string | number | boolean | null | undefined | ((event: any) => void)>;

/** An element: attributes, `on...` listeners, children. */
export function h<K extends keyof HTMLElementTagNameMap>(
  tag: K,
  attributes: Attributes = {},
  ...children: Child[]
): HTMLElementTagNameMap[K] {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (value === null || value === undefined || value === false) continue;
    if (typeof value === "function") element.addEventListener(name.slice(2), value);
    else element.setAttribute(name, value === true ? "" : String(value));
  }
  append(element, children);
  return element;
}

export function append(element: Element, children: Child[]): void {
  for (const child of children) {
    if (Array.isArray(child)) append(element, child);
    else if (child instanceof Node) element.append(child);
    else if (child !== null && child !== undefined && child !== false) element.append(String(child));
  }
}

/** Replaces what an element holds. */
export function fill(element: Element, ...children: Child[]): void {
  element.replaceChildren();
  append(element, children);
}

/** A custom property of the page's style, such as a colour. */
export function token(name: string): string {
  return getComputedStyle(document.documentElement).getPropertyValue(name).trim();
}

/** A bar of a share of its whole. Set by script, since the policy forbids style attributes. */
export function bar(share: number, colour?: string): HTMLElement {
  const inner = h("span", { class: "bar-fill" });
  inner.style.width = `${Math.max(0, Math.min(100, share))}%`;
  if (colour) inner.style.background = colour;
  return h("span", { class: "bar", "aria-hidden": "true" }, inner);
}

/** A square in a colour. */
export function swatch(colour: string): HTMLElement {
  const square = h("span", { class: "swatch", "aria-hidden": "true" });
  square.style.background = colour;
  return square;
}
