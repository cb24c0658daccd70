// Sorting of tables, filters of datasets and methods, the read-out of charts. Nothing is loaded, nothing is kept.
(function () {
  'use strict';

  function all(selector, root) {
    return Array.from((root || document).querySelectorAll(selector));
  }

  // what a cell sorts by: its number, else its text; null, which comes last, if it is empty
  function key(cell) {
    const given = cell.getAttribute('data-value');
    const text = given === null ? cell.textContent.trim() : given;
    if (text === '') {
      return null;
    }
    const number = Number(text);
    return Number.isNaN(number) ? text : number;
  }

  function compare(one, other, rising) {
    if (one === null || other === null) {
      return one === other ? 0 : one === null ? 1 : -1;
    }
    const both = typeof one === 'number' && typeof other === 'number';
    const order = both ? one - other : String(one).localeCompare(String(other));
    return rising ? order : -order;
  }

  function sortable(table) {
    const heads = all('thead th', table);
    heads.forEach(function (head, place) {
      head.querySelector('button').addEventListener('click', function () {
        const sorted = head.getAttribute('aria-sort');
        const rising = sorted === 'descending' || (sorted === null && head.classList.contains('text'));
        heads.forEach(function (other) {
          other.removeAttribute('aria-sort');
        });
        head.setAttribute('aria-sort', rising ? 'ascending' : 'descending');
        const body = table.tBodies[0];
        all('tr', body)
          .map(function (row) {
            return { row: row, key: key(row.children[place]) };
          })
          .sort(function (one, other) {
            return compare(one.key, other.key, rising);
          })
          .forEach(function (each) {
            body.appendChild(each.row);
          });
      });
    });
  }

  function filtered(section) {
    const search = section.querySelector('input[type=search]');
    const boxes = all('input[data-show]', section);
    const said = section.querySelector('[data-count]');

    function apply() {
      const words = search.value.toLowerCase().split(/\s+/).filter(Boolean);
      const off = new Set(
        boxes
          .filter(function (box) {
            return !box.checked;
          })
          .map(function (box) {
            return box.getAttribute('data-show');
          })
      );
      let shown = 0;
      let total = 0;
      all('[data-method], [data-dataset]', section).forEach(function (element) {
        const name = (element.getAttribute('data-dataset') || '').toLowerCase();
        const matches =
          !element.hasAttribute('data-dataset') ||
          words.every(function (word) {
            return name.includes(word);
          });
        element.toggleAttribute('hidden', !matches || off.has(element.getAttribute('data-method')));
        if (element.hasAttribute('data-row') && element.closest('#' + section.id + '-scores')) {
          total += 1;
          shown += element.hasAttribute('hidden') ? 0 : 1;
        }
      });
      said.textContent = shown + ' of ' + total + ' rows of scores shown';
    }

    search.addEventListener('input', apply);
    boxes.forEach(function (box) {
      box.addEventListener('change', apply);
    });
    apply();
  }

  function readable(figure) {
    const svg = figure.querySelector('svg');
    const words = figure.querySelector('figcaption');
    if (!svg || !words) {
      return;
    }
    const usual = words.textContent;
    const dots = all('.dot', svg);
    svg.addEventListener('pointermove', function (event) {
      let best = null;
      let nearest = 900; // within 30 pixels
      dots.forEach(function (dot) {
        if (dot.parentNode.hasAttribute('hidden')) {
          return;
        }
        const box = dot.getBoundingClientRect();
        const across = event.clientX - (box.left + box.width / 2);
        const up = event.clientY - (box.top + box.height / 2);
        if (across * across + up * up < nearest) {
          nearest = across * across + up * up;
          best = dot;
        }
      });
      words.textContent = best ? best.getAttribute('data-told') : usual;
    });
    svg.addEventListener('pointerleave', function () {
      words.textContent = usual;
    });
  }

  all('table[data-sortable]').forEach(sortable);
  all('section[data-experiment]').forEach(filtered);
  all('figure').forEach(readable);
})();
