// SPDX-License-Identifier: Apache-2.0
// The search of the pages. What it looks through is site-index.js, which is fetched when somebody first searches, by an element, since a page
// that a browser has read from a file may fetch nothing else.
"use strict";
(() => {
    const root = document.currentScript.dataset.root, most = 40;
    const form = document.querySelector("form"), input = form.querySelector("input"), results = document.getElementById("results");
    let entries; // each: address, title, text, and both in small letters

    // What is found: in the title as a whole, at its beginning, in it, or in the text. Each word has to be there.
    const rank = (entry, words) => {
        let sum = 0;
        for (const word of words) {
            const at = entry.name.indexOf(word);
            if (at < 0 && !entry.words.includes(word))
                return 0;
            sum += at < 0 ? 1 : entry.name === word ? 9 : at === 0 || /\W/.test(entry.name[at - 1]) ? 6 : 4;
        }
        return sum;
    };

    // The text around the first word, with the words marked. The text enters the page as text only.
    const excerpt = (entry, words) => {
        const line = document.createElement("small"), first = Math.max(0, ...words.map((word) => entry.words.indexOf(word)).slice(0, 1));
        const begin = Math.max(0, first - 60), text = (begin ? "…" : "") + entry.text.slice(begin, begin + 200);
        const pattern = new RegExp("(" + words.map((word) => word.replace(/[^\w]/g, "\\$&")).join("|") + ")", "iu");
        text.split(pattern).forEach((part, index) => {
            line.append(index % 2 ? Object.assign(document.createElement("mark"), {textContent: part}) : part);
        });
        return line;
    };

    const show = () => {
        const words = input.value.toLowerCase().split(/\s+/).filter(Boolean);
        results.hidden = !words.length || !entries;
        if (results.hidden)
            return;
        const found = entries.map((entry) => [rank(entry, words), entry]).filter(([sum]) => sum).sort((a, b) => b[0] - a[0]);
        const count = document.createElement("p");
        count.textContent = found.length > most ? `${found.length} found, the first ${most}:` : `${found.length || "Nothing"} found`;
        results.replaceChildren(count, ...found.slice(0, most).map(([, entry]) => {
            const link = document.createElement("a");
            link.href = root + entry.address;
            link.append(Object.assign(document.createElement("b"), {textContent: entry.title}), excerpt(entry, words));
            return link;
        }));
    };

    const load = () => {
        if (document.getElementById("index"))
            return;
        window.siteIndex = (listed) => {
            entries = listed.map(([address, title, text]) => ({address, title, text, name: title.toLowerCase(), words: text.toLowerCase()}));
            show();
        };
        document.head.append(Object.assign(document.createElement("script"), {id: "index", src: root + "site-index.js"}));
    };

    form.hidden = false;
    form.addEventListener("submit", (event) => {
        event.preventDefault();
        results.querySelector("a")?.click();
    });
    input.addEventListener("focus", load);
    input.addEventListener("input", show);
    results.addEventListener("click", () => { results.hidden = true; });
    document.addEventListener("keydown", (event) => {
        if (event.key === "/" && document.activeElement !== input) {
            event.preventDefault();
            input.focus();
        } else if (event.key === "Escape") {
            results.hidden = true;
        }
    });
    document.addEventListener("click", (event) => {
        if (!event.target.closest("header"))
            results.hidden = true;
    });
    // Beside the page the list scrolls by itself; below it this does nothing.
    const list = document.querySelector("nav"), current = list.querySelector("[aria-current]");
    if (current && current.offsetTop > list.clientHeight / 2)
        list.scrollTop = current.offsetTop - list.clientHeight / 2;
})();
